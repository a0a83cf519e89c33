//go:build !linux

package nodeagent

import "github.com/candor-grid/candor/messages"

func uptime() messages.Time { return sinceStart() }
