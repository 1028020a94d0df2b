package http

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/ration-dev/ration/agent"
	"github.com/ration-dev/ration/lease"
)

// decodeCheck reads a request's body. Its errors are *lease.Error with code
// Invalid and the JSON path of the member at fault. It checks form and
// the range of numbers; the other bounds are agent.Check's.
func decodeCheck(body []byte) (agent.Check, error) {
	r := &reader{dec: json.NewDecoder(bytes.NewReader(body)), body: body}
	r.dec.UseNumber()
	check := agent.Check{Cost: 1}
	err := r.object("", func(key string) (err error) {
		switch key {
		case "descriptors":
			check.Descriptors, err = r.descriptors(key)
		case "budgets":
			check.Budgets, err = r.texts(key)
		case "cost":
			var n int64
			n, err = r.integer(key, int64(lease.MaxTokens))
			check.Cost = lease.Tokens(n)
		case "requestId":
			check.RequestID, err = r.text(key)
		case "deadlineMs":
			var ms int64
			ms, err = r.integer(key, maxMillis)
			check.Deadline = time.Duration(ms) * time.Millisecond
		default:
			err = invalid(key, "unknown member")
		}
		return err
	})
	if err != nil {
		return agent.Check{}, err
	}
	if _, err := r.dec.Token(); !errors.Is(err, io.EOF) {
		return agent.Check{}, invalid("", "more than one JSON value")
	}
	return check, nil
}

// maxMillis is the longest duration that Go can hold.
const maxMillis = math.MaxInt64 / int64(time.Millisecond)

// reader reads JSON token by token, so that it knows where each fault lies,
// and never deeper than a request goes.
type reader struct {
	dec  *json.Decoder
	body []byte
}

func (r *reader) descriptors(path string) (list []agent.Descriptor, err error) {
	err = r.list(path, func(path string) error {
		var d agent.Descriptor
		err := r.object(path, func(key string) (err error) {
			switch key {
			case "key":
				d.Key, err = r.text(join(path, key))
			case "value":
				d.Value, err = r.text(join(path, key))
			default:
				err = invalid(join(path, key), "unknown member")
			}
			return err
		})
		list = append(list, d)
		return err
	})
	return list, err
}

func (r *reader) texts(path string) (list []string, err error) {
	err = r.list(path, func(path string) error {
		s, err := r.text(path)
		list = append(list, s)
		return err
	})
	return list, err
}

// object reads an object and calls member for each key, which reads the value.
func (r *reader) object(path string, member func(key string) error) error {
	if err := r.open('{', path, "an object"); err != nil {
		return err
	}
	var seen []string
	for last := path; r.dec.More(); {
		// What cannot follow a value, as the 1 in 01, is that member's fault.
		token, raw, err := r.token(last)
		if err != nil {
			return err
		}
		key, err := text(token, raw, path)
		if err != nil {
			return err
		}
		last = join(path, key)
		if slices.Contains(seen, key) {
			return invalid(last, "given twice")
		}
		seen = append(seen, key)
		if err := member(key); err != nil {
			return err
		}
	}
	_, _, err := r.token(path)
	return err
}

// list reads an array and calls element for each place in it.
func (r *reader) list(path string, element func(path string) error) error {
	if err := r.open('[', path, "a list"); err != nil {
		return err
	}
	for i := 0; r.dec.More(); i++ {
		if err := element(path + "[" + strconv.Itoa(i) + "]"); err != nil {
			return err
		}
	}
	_, _, err := r.token(path)
	return err
}

func (r *reader) open(delim json.Delim, path, want string) error {
	token, _, err := r.token(path)
	if err == nil && token != delim {
		err = invalid(path, "must be "+want)
	}
	return err
}

func (r *reader) text(path string) (string, error) {
	token, raw, err := r.token(path)
	if err != nil {
		return "", err
	}
	return text(token, raw, path)
}

// text returns the string that a token is.
func text(token json.Token, raw []byte, path string) (string, error) {
	s, ok := token.(string)
	switch {
	case !ok:
		return "", invalid(path, "must be a string")
	case !utf8.Valid(raw) || loneSurrogate(raw):
		return "", invalid(path, "is not valid Unicode")
	}
	return s, nil
}

// integer reads a whole number from 0 to most.
func (r *reader) integer(path string, most int64) (int64, error) {
	token, _, err := r.token(path)
	if err != nil {
		return 0, err
	}
	number, ok := token.(json.Number)
	if !ok {
		return 0, invalid(path, "must be a number")
	}
	if strings.ContainsAny(number.String(), ".eE") {
		return 0, invalid(path, "must be a whole number without fraction or exponent")
	}
	n, err := strconv.ParseInt(number.String(), 10, 64)
	if err != nil || n < 0 || n > most {
		return 0, invalid(path, fmt.Sprintf("must be from 0 to %d", most))
	}
	return n, nil
}

// token returns the next token and the bytes it was read from, with what
// stands before it.
func (r *reader) token(path string) (json.Token, []byte, error) {
	start := r.dec.InputOffset()
	token, err := r.dec.Token()
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return nil, nil, invalid(path, "the JSON ends too early")
	case err != nil:
		return nil, nil, invalid(path, "not JSON: "+err.Error())
	}
	return token, r.body[start:r.dec.InputOffset()], nil
}

// loneSurrogate reports whether a string literal has a \u escape that is half
// a character. encoding/json replaces it, so that two request ids or names
// would become one.
func loneSurrogate(raw []byte) bool {
	for i := 0; i+1 < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		i++
		if raw[i] != 'u' {
			continue
		}
		first := hexRune(raw[i+1:])
		i += 4
		if !utf16.IsSurrogate(first) {
			continue
		}
		rest := raw[min(i+1, len(raw)):]
		if len(rest) < 6 || rest[0] != '\\' || rest[1] != 'u' || utf16.DecodeRune(first, hexRune(rest[2:])) == utf8.RuneError {
			return true
		}
		i += 6
	}
	return false
}

// hexRune reads four hexadecimal digits, which the JSON scanner has checked.
func hexRune(digits []byte) rune {
	n, _ := strconv.ParseUint(string(digits[:min(4, len(digits))]), 16, 32)
	return rune(n)
}

// invalid names the member at fault, or the body if it is none.
func invalid(path, reason string) error {
	if path == "" {
		path = "body"
	}
	return lease.Errorf(lease.Invalid, shorten(path), "%s", shorten(reason))
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// shorten keeps an answer from repeating a caller's text at length.
func shorten(s string) string {
	const most = 200
	if len(s) > most {
		s = s[:most] + "..."
	}
	return strings.ToValidUTF8(s, "?")
}
