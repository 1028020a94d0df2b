// Package app assembles the servers that the commands start: an allocator, a
// regional agent, and dev, which is all of it in one process. Each has Start
// and Stop; Stop may be called any number of times, drains before it ends, and
// tears down in the reverse order of starting.
package app
