// Package rpc carries lease.Source and policy.Source over gRPC: a server for
// the allocator, a client for the agents, and between them one pair of
// functions that turns errors into statuses and back.
//
// The server takes the region from the caller's credential and converts
// messages faithfully; it judges no value, which is the allocator's part. It
// refuses only what has no counterpart in Go: an enum number that it does not
// know, and a duration beyond time.Duration; and lists that are too long, before
// it makes room for them. Such an item fails alone, as an item that the
// allocator refuses does; a batch that is too long fails whole.
//
// The client refuses the same in replies. It never repeats a call by itself:
// the agent sends the same request again when it sees fit, which the protocol
// makes harmless.
package rpc
