// Package lease holds the words that the global and the regional side share:
// tokens, rates, times, the Sync messages, and the errors. It uses nothing
// but the standard library.
package lease
