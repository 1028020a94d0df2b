// Package batch runs scenarios: every strategy with every seed, several at a
// time, and sums up what came out. What it returns does not depend on how many
// ran at a time.
package batch
