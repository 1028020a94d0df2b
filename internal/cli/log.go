package cli

import (
	"io"
	"log/slog"
)

// NewLog writes JSON lines, or text on a terminal.
func NewLog(w io.Writer, level slog.Level) *slog.Logger {
	opts := &slog.HandlerOptions{Level: level}
	if Terminal(w) {
		return slog.New(slog.NewTextHandler(w, opts))
	}
	return slog.New(slog.NewJSONHandler(w, opts))
}

// Level is a flag for the least severe level that is logged.
type Level struct{ slog.Level }

// Set implements pflag.Value.
func (l *Level) Set(s string) error { return l.UnmarshalText([]byte(s)) }

// Type is what the help calls the value.
func (l *Level) Type() string { return "level" }
