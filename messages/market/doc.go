// Package market is the vocabulary of markets: their configuration ([Market]), quotes, prices, shares, nodes and
// licences, and the questions to the estimator.
package market
