package redis

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/redis/go-redis/v9"
)

// LogTo sends what the client library says, once per failed connection and so
// at level debug, to log instead of to stderr. It is for the whole process: a
// command calls it once, before Open.
func LogTo(log *slog.Logger) { redis.SetLogger(library{log}) }

type library struct{ log *slog.Logger }

// Printf implements the library's logger.
func (l library) Printf(ctx context.Context, format string, args ...any) {
	l.log.DebugContext(ctx, "the redis client", "says", fmt.Sprintf(format, args...))
}
