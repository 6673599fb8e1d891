// SPDX-License-Identifier: Apache-2.0

// Package session keeps what the console knows of a user in cookies of that user's browser, encrypted with a key of the
// console. The console itself remembers nothing.
package session

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A Session of one browser.
type Session struct {
	// ID is random and new after each login.
	ID string `json:"id"`

	// Token of the user for the API server. Empty before a login.
	Token string `json:"token,omitempty"`

	// User as the API server knows the token.
	User string `json:"user,omitempty"`

	// Expires is when the session ends at the latest.
	Expires time.Time `json:"expires"`

	// Login that is under way with an OIDC provider.
	Login *Login `json:"login,omitempty"`
}

// A Login with an OIDC provider, between its two steps.
type Login struct {
	State    string `json:"state"`
	Nonce    string `json:"nonce"`
	Verifier string `json:"verifier"`
	// Next is the page to show afterwards.
	Next string `json:"next"`
}

// LoggedIn reports whether the user is logged in at a time.
func (s *Session) LoggedIn(now time.Time) bool { return s.Token != "" && now.Before(s.Expires) }

// longest is how long a session lasts at most, also with a token that lasts longer.
const longest = 12 * time.Hour

// Browsers take at most 4096 bytes for a cookie with its name and attributes. Tokens with many groups need more than one.
const (
	chunk     = 3800
	mostChunk = 4
)

// A Keeper reads and writes sessions.
type Keeper struct {
	name   string
	secure bool
	seal   cipher.AEAD
	sign   []byte
}

// New keeper with a key of at least 32 bytes. With secure, browsers send the cookies by TLS only.
func New(key []byte, secure bool) (*Keeper, error) {
	if len(key) < 32 {
		return nil, fmt.Errorf("cannot encrypt sessions with a key of %d bytes: it needs at least 32", len(key))
	}
	sealing, err := hkdf.Key(sha256.New, key, nil, "capstan-console session", 32)
	if err != nil {
		return nil, fmt.Errorf("cannot derive a key: %w", err)
	}
	signing, err := hkdf.Key(sha256.New, key, nil, "capstan-console form", 32)
	if err != nil {
		return nil, fmt.Errorf("cannot derive a key: %w", err)
	}
	block, err := aes.NewCipher(sealing)
	if err != nil {
		return nil, fmt.Errorf("cannot make a cipher: %w", err)
	}
	seal, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("cannot make a cipher: %w", err)
	}
	name := "capstan"
	if secure {
		// Browsers take a cookie of such a name from this host only, and by TLS.
		name = "__Host-capstan"
	}

	return &Keeper{name: name, secure: secure, seal: seal, sign: signing}, nil
}

// Random text that cannot be guessed.
func Random() string { return rand.Text() + rand.Text() }

// Read the session of a request. One that cannot be read is a new session.
func (k *Keeper) Read(r *http.Request) *Session {
	s, err := k.open(r)
	if err != nil || s.ID == "" {
		return &Session{ID: Random()}
	}

	return s
}

func (k *Keeper) open(r *http.Request) (*Session, error) {
	var text strings.Builder
	for i := range mostChunk {
		c, err := r.Cookie(k.name + strconv.Itoa(i))
		if err != nil {
			break
		}
		text.WriteString(c.Value)
	}
	sealed, err := base64.RawURLEncoding.DecodeString(text.String())
	if err != nil || len(sealed) < k.seal.NonceSize() {
		return nil, errors.New("there is no session")
	}
	n := k.seal.NonceSize()
	plain, err := k.seal.Open(nil, sealed[:n], sealed[n:], []byte(k.name))
	if err != nil {
		return nil, fmt.Errorf("cannot decrypt the session: %w", err)
	}
	s := &Session{}
	if err := json.Unmarshal(plain, s); err != nil {
		return nil, fmt.Errorf("cannot read the session: %w", err)
	}

	return s, nil
}

// Write the session into the answer.
func (k *Keeper) Write(w http.ResponseWriter, s *Session, now time.Time) error {
	if latest := now.Add(longest); s.Expires.IsZero() || s.Expires.After(latest) {
		s.Expires = latest
	}
	plain, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("cannot write the session: %w", err)
	}
	nonce := make([]byte, k.seal.NonceSize())
	_, _ = rand.Read(nonce) // It never fails.
	text := base64.RawURLEncoding.EncodeToString(k.seal.Seal(nonce, nonce, plain, []byte(k.name)))
	if len(text) > chunk*mostChunk {
		return fmt.Errorf("cannot keep a token of %d bytes in cookies: ask the platform team for tokens with fewer groups", len(s.Token))
	}
	for i := range mostChunk {
		part := text[min(i*chunk, len(text)):min((i+1)*chunk, len(text))]
		k.set(w, i, part)
	}

	return nil
}

// End the session in the browser.
func (k *Keeper) End(w http.ResponseWriter) {
	for i := range mostChunk {
		k.set(w, i, "")
	}
}

func (k *Keeper) set(w http.ResponseWriter, i int, value string) {
	c := &http.Cookie{Name: k.name + strconv.Itoa(i), Value: value, Path: "/", HttpOnly: true, Secure: k.secure, SameSite: http.SameSiteLaxMode}
	if value == "" {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}

// FormToken proves that a form was made for this session.
func (k *Keeper) FormToken(s *Session) string {
	mac := hmac.New(sha256.New, k.sign)
	mac.Write([]byte(s.ID))

	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// Genuine reports whether a form was made for this session.
func (k *Keeper) Genuine(s *Session, token string) bool {
	return subtle.ConstantTimeCompare([]byte(k.FormToken(s)), []byte(token)) == 1
}
