package serve

import "github.com/coreos/go-systemd/v22/daemon"

// serving tells a service manager that waits for it, systemd, that all is up;
// where there is none it does nothing.
func serving() { _, _ = daemon.SdNotify(false, daemon.SdNotifyReady) }

// leaving tells it that the end has begun.
func leaving() { _, _ = daemon.SdNotify(false, daemon.SdNotifyStopping) }
