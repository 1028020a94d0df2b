package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"
)

// token is this region's token as its file says. The file is looked at again
// about once a second while calls are made, so that a token can be replaced; a
// file that is gone or bad changes nothing. Safe for concurrent use.
type token struct {
	path string
	log  *slog.Logger

	mu     sync.Mutex
	value  string
	looked time.Time
	failed bool
}

// Bounds of the token's file.
const (
	maxToken   = 4096
	tokenEvery = time.Second
)

func newToken(path string, log *slog.Logger) (*token, error) {
	t := &token{path: path, log: log, looked: time.Now()}
	var err error
	t.value, err = readToken(path)
	return t, err
}

func readToken(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxToken+1))
	if err != nil {
		return "", err
	}
	value := strings.TrimSpace(string(data))
	switch {
	case value == "":
		return "", errors.New("the file has no token")
	case len(data) > maxToken:
		return "", fmt.Errorf("the file is larger than %d bytes", maxToken)
	case strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", fmt.Errorf("the file is to have one token, of printable ASCII without spaces")
	}
	return value, nil
}

func (t *token) read() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if time.Since(t.looked) < tokenEvery {
		return t.value
	}
	t.looked = time.Now()
	value, err := readToken(t.path)
	if err == nil {
		t.value = value
	} else if !t.failed {
		t.log.Warn("the token's file cannot be read: the last token stays in force", "error", err)
	}
	t.failed = err != nil
	return t.value
}
