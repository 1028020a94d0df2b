// Package bench measures the product beside what people use today and beside
// what the machine allows, and prints one table of it. It has benchmarks
// alone: `make bench` runs them, `go test` only tests what they share.
//
// A benchmark measures ours and its yardstick in turn, in one run, and reports
// the medians and their ratio: machines differ, and a busy one slows both. Where
// what is measured is a server, the test binary is also each server's process
// (BenchmarkServed); the other benchmarks have all in one process. Each reports
// its rows itself (report); TestMain prints them when all have run, and -md writes
// them into a Markdown file between two marks.
//
// Most of them last as long as they say, whatever b.N is: run them with
// -benchtime 1x.
package bench
