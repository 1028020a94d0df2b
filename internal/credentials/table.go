// Package credentials tells which region a bearer token belongs to.
//
// Tokens come from a file, one "region: token" a line, or from an environment
// variable, "us=token,eu=token". A region may have several, so that a token
// can be replaced without a pause: add the new one, move the agents, take the
// old one away. A token belongs to one region. Nothing here prints a token.
package credentials

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Bounds of one region's name and one token, in bytes.
const (
	maxRegion = 256
	maxToken  = 4096
)

// Table is a fixed set of tokens. The zero value has none. Safe for
// concurrent use.
type Table struct{ entries []entry }

type entry struct {
	region string
	digest [sha256.Size]byte
}

// Region returns the region that the token belongs to, and false if it
// belongs to none. It compares digests, with every entry and in constant
// time, so that the time taken tells nothing of any token.
func (t *Table) Region(token string) (string, bool) {
	digest := sha256.Sum256([]byte(token))
	found := -1
	for i := range t.entries {
		if subtle.ConstantTimeCompare(digest[:], t.entries[i].digest[:]) == 1 {
			found = i
		}
	}
	if found < 0 {
		return "", false
	}
	return t.entries[found].region, true
}

// ParseFile reads lines of "region: token"; empty ones and those that begin
// with # are skipped. name stands in errors, with the line.
func ParseFile(name string, data []byte) (*Table, error) {
	t := new(Table)
	for i, line := range strings.Split(string(data), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		// The last colon: a region's name may have some, a token has none.
		colon := strings.LastIndexByte(line, ':')
		if colon < 0 {
			return nil, fmt.Errorf("%s:%d: want region: token", name, i+1)
		}
		if err := t.add(line[:colon], line[colon+1:]); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, i+1, err)
		}
	}
	if len(t.entries) == 0 {
		return nil, fmt.Errorf("%s: it has no region: token line", name)
	}
	return t, nil
}

// ParseList reads "us=token,eu=token". name stands in errors, with the place
// in the list.
func ParseList(name, list string) (*Table, error) {
	t := new(Table)
	for i, pair := range strings.Split(list, ",") {
		// The first equals sign: a token may end in some.
		region, token, ok := strings.Cut(pair, "=")
		if !ok {
			return nil, fmt.Errorf("%s: entry %d: want region=token", name, i+1)
		}
		if err := t.add(region, token); err != nil {
			return nil, fmt.Errorf("%s: entry %d: %w", name, i+1, err)
		}
	}
	return t, nil
}

func (t *Table) add(region, token string) error {
	region, token = strings.TrimSpace(region), strings.TrimSpace(token)
	switch {
	case region == "" || len(region) > maxRegion || !utf8.ValidString(region):
		return fmt.Errorf("a region's name is 1 to %d bytes of UTF-8", maxRegion)
	case token == "" || len(token) > maxToken:
		return fmt.Errorf("a token is 1 to %d bytes", maxToken)
	case strings.IndexFunc(token, notInToken) >= 0:
		return fmt.Errorf("a token is made of letters, digits and -._~+/= only")
	}
	if owner, taken := t.Region(token); taken && owner != region {
		return fmt.Errorf("the token is region %q's already", owner)
	}
	t.entries = append(t.entries, entry{region: region, digest: sha256.Sum256([]byte(token))})
	return nil
}

// notInToken rules out what an authorization header could not carry.
func notInToken(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return false
	}
	return !strings.ContainsRune("-._~+/=", r)
}
