// Package clearing is the vocabulary between sites: jobs that run at another site, the authorisations with which they
// are paid, the numbered instructions between two banks, and netting.
package clearing
