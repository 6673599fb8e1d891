// SPDX-License-Identifier: Apache-2.0

// Package logtest is a transparency log for tests: it answers as Rekor v1 does to what releasing asks, and signs with a key of its own.
package logtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/capstan-dev/capstan/hack/internal/cosign"
)

const entries = "/api/v1/log/entries"

// A Log keeps its entries in memory.
type Log struct {
	key *cosign.Key

	mu     sync.Mutex
	known  map[string]cosign.Answer
	serial int64
}

// New returns a Log with a new key.
func New() (*Log, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("cannot make a key: %w", err)
	}
	key, err := cosign.NewKey(private)
	if err != nil {
		return nil, err
	}
	return &Log{key: key, known: map[string]cosign.Answer{}}, nil
}

// Public is the log's public key in PEM.
func (l *Log) Public() []byte { return l.key.Public() }

// ServeHTTP answers the three requests that releasing makes.
func (l *Log) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id, isEntry := strings.CutPrefix(r.URL.Path, entries+"/")
	switch {
	case r.URL.Path == "/api/v1/log/publicKey":
		_, _ = w.Write(l.Public())
	case r.Method == http.MethodPost && r.URL.Path == entries:
		l.add(w, r)
	case isEntry:
		l.mu.Lock()
		answer, ok := l.known[id]
		l.mu.Unlock()
		if !ok {
			http.NotFound(w, r)
			return
		}
		respond(w, http.StatusOK, id, answer)
	default:
		http.NotFound(w, r)
	}
}

// add refuses what is there already, as Rekor does.
func (l *Log) add(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var record cosign.Record
	if err := json.Unmarshal(body, &record); err != nil || record.Kind != "hashedrekord" {
		http.Error(w, "this is no hashedrekord", http.StatusBadRequest)
		return
	}
	sum := sha256.Sum256(body)
	id := hex.EncodeToString(sum[:])
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.known[id]; ok {
		w.Header().Set("Location", entries+"/"+id)
		http.Error(w, "an equivalent entry already exists", http.StatusConflict)
		return
	}
	l.serial++
	answer, err := l.sign(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	l.known[id] = answer
	respond(w, http.StatusCreated, id, answer)
}

func (l *Log) sign(body []byte) (cosign.Answer, error) {
	block, _ := pem.Decode(l.Public())
	id := sha256.Sum256(block.Bytes)
	answer := cosign.Answer{Entry: cosign.Entry{
		Body: base64.StdEncoding.EncodeToString(body), IntegratedTime: time.Now().Unix(), LogID: hex.EncodeToString(id[:]), LogIndex: l.serial,
	}}
	message, err := json.Marshal(answer.Entry)
	if err != nil {
		return answer, err
	}
	answer.Verification.SignedEntryTimestamp, err = l.key.Sign(message)
	return answer, err
}

func respond(w http.ResponseWriter, status int, id string, answer cosign.Answer) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(map[string]cosign.Answer{id: answer}); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}
