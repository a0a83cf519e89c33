// Package money is the vocabulary of a site's bank: accounts and projects, transfers, statements and the journal.
package money
