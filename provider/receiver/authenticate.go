// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Headers of a signed request. Grafana calls both what its contact point names, and signs in this form.
const (
	headerSignature = "Capstan-Signature"
	headerTimestamp = "Capstan-Timestamp"
)

// tolerance is how far the timestamp of a signed request may be from our clock. A signature counts once in this time.
const tolerance = 5 * time.Minute

// trimmed key: editors and echo leave a line break at the end.
func trimmed(key []byte) string { return strings.TrimRight(string(key), "\r\n") }

// sign a body at a time in Unix seconds: the HMAC-SHA256 of time, colon and body, in hexadecimal digits.
func sign(key, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(timestamp + ":"))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

// A verdict about the sender of a request.
type verdict int

const (
	unknownSender verdict = iota
	knownSender
	// repeated: the very same signed request was accepted before.
	repeated
)

// authenticate the sender of a request by one of the keys.
func (k keys) authenticate(h http.Header, body []byte, now time.Time, once *signatures) verdict {
	if token, ok := strings.CutPrefix(h.Get("Authorization"), "Bearer "); ok && k.token != "" && same(token, k.token) {
		return knownSender
	}
	signature, timestamp := strings.TrimPrefix(h.Get(headerSignature), "sha256="), h.Get(headerTimestamp)
	if k.signing == "" || signature == "" {
		return unknownSender
	}
	at, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || now.Sub(time.Unix(at, 0)).Abs() > tolerance {
		return unknownSender
	}
	want := sign(k.signing, timestamp, body)
	if !same(strings.ToLower(signature), want) {
		return unknownSender
	}
	if !once.first(want, now) {
		return repeated
	}
	return knownSender
}

// same reports whether two texts are equal, in a time that does not depend on where they differ, nor on their lengths.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// maxSignatures of a namespace that are remembered. Rates are limited, so that there are fewer.
const maxSignatures = 100_000

// signatures that were accepted lately, by this process.
type signatures struct {
	mu    sync.Mutex
	seen  map[string]time.Time
	swept time.Time
}

// first reports whether a signature is seen for the first time within the tolerance, to both sides.
func (s *signatures) first(signature string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil {
		s.seen = map[string]time.Time{}
	}
	if len(s.seen) >= maxSignatures/2 && now.Sub(s.swept) >= time.Minute {
		s.swept = now
		for k, at := range s.seen {
			if now.Sub(at) > 2*tolerance {
				delete(s.seen, k)
			}
		}
	}
	if at, ok := s.seen[signature]; ok && now.Sub(at) <= 2*tolerance || len(s.seen) >= maxSignatures {
		return false
	}
	s.seen[signature] = now
	return true
}

// forget a signature whose request could not be carried out, so that its sender can repeat it.
func (s *signatures) forget(signature string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.seen, signature)
}
