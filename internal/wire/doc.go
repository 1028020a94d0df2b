// Package wire is for gRPC methods that are called so often that the protobuf
// library's messages, made anew for every call, are too much garbage. Such a
// method has a request of its own, which reads the bytes field by field and is
// used again, and a reply that is written field by field into gRPC's own buffers.
// What is well formed, and which of several values counts, is as the library has
// it, save where a method says otherwise: tests of each method compare the two.
package wire
