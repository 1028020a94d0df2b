// Package http is an agent's decision face over HTTP:
//
//	POST /v1/limits:check
//	{"descriptors":[{"key":"tenant","value":"acme"}],"cost":1,"requestId":"r1","deadlineMs":5}
//
// 200 and 429 carry the decision:
//
//	{"allowed":true,"limit":100,"remaining":99,"retryAfterMs":0,"resetAfterMs":10,
//	 "policyVersion":"search@4","reason":"ok"}
//
// with the header fields RateLimit-Policy and RateLimit, and Retry-After on a
// denial: retryAfterMs in seconds, rounded up. Where the time is unknown it is
// 100 ms, and 0 without the header where the cost can never pass. Every other status carries
//
//	{"error":{"code":"invalid","field":"cost","reason":"..."}}
//
// where code is a lease.Code's word and field the path of the member at fault.
// 503 with Retry-After means that no decision could be made, 400 bad input,
// 409 a requestId that was used with other content.
//
// The body is read strictly: a member that is unknown, given twice, of
// another type, or not UTF-8 is refused by name, because a limit that is
// checked for something else than the caller meant is no limit. cost is 1 if
// left out, never a peek by accident.
package http
