package allocation

import "errors"

// ErrUnknownCommit is returned by a Store when a transaction was sent to be
// committed and it cannot know whether it was. The caller answers "outcome
// unknown"; the region's retry finds out.
var ErrUnknownCommit = errors.New("allocation: outcome of commit unknown")
