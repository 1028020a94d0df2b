// Package envoy is an agent's face for Envoy and for whatever else speaks its
// rate limit protocol: envoy.service.ratelimit.v3, ShouldRateLimit.
//
// # What is matched
//
// Each descriptor is a set of pairs: its entries, and the request's domain as
// a pair of the key "domain". A budget matches a descriptor that has all the
// pairs of the budget's match, in any order and whatever else it has. So a
// budget is kept to one domain by naming it, and one that does not is common to
// all. An entry that is itself called "domain" is left out: the domain is what
// Envoy's own configuration says. Any other entry is taken as it is, empty, long,
// beside another of its key, or not UTF-8 (those bytes are read as U+FFFD): what a client sends must not turn the check into
// an error, which Envoy by default lets pass.
//
// # What is charged
//
// All budgets that the descriptors match are charged, or none. A budget that
// several descriptors match is charged once, the most that any of them adds. A
// descriptor's own hits_addend goes before the request's, and a request without
// one adds 1. A descriptor's own 0 charges nothing and asks whether a token is
// left; such budgets are looked at before any is charged. Tokens that were
// spent never come back, so is_negative_hits is refused. A descriptor's limit
// override is not heeded: how much may pass, the budget's owner says.
//
// # What is answered
//
// One status per descriptor, in order: OVER_LIMIT for those that match the
// budget that denied, OK for the others. It has the contract of the matched
// budget with the least left, what is left of it in this region, and the time
// until it is full, or its window over. A contract that no number of requests
// per unit says, as 3 per 700 ms, has no current_limit. A descriptor that no
// budget matches is OK without any of these. From the statuses Envoy writes the
// X-RateLimit headers if it is told to; a denial also carries Retry-After, unless
// what was asked could never pass.
//
// No decision is UNAVAILABLE, never a code of a reply: Envoy then does what its
// failure_mode_deny says, which is its owner's choice for just this case.
package envoy
