// Package clearing is the vocabulary between sites: jobs that run at another site, the authorisations that pay for
// them, the numbered instructions between two banks, and netting.
package clearing
