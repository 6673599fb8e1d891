// SPDX-License-Identifier: Apache-2.0

package cosign

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// PublicLog is the transparency log of Sigstore, whose key Crossplane knows by default.
const PublicLog = "https://rekor.sigstore.dev"

const (
	logTimeout = time.Minute
	// maxAnswer is far above the few kilobytes of an entry.
	maxAnswer = 1 << 20
)

// A Log is a transparency log with the API of Rekor v1. Crossplane accepts no signature that is in none.
type Log struct {
	// URL without a path.
	URL string
}

// An Entry of the log, with its fields in the order that the log signs them in: by their names.
type Entry struct {
	Body           string `json:"body"`
	IntegratedTime int64  `json:"integratedTime"`
	LogID          string `json:"logID"`
	LogIndex       int64  `json:"logIndex"`
}

// An Answer of the log to a new entry.
type Answer struct {
	Entry

	Verification struct {
		SignedEntryTimestamp []byte `json:"signedEntryTimestamp"`
	} `json:"verification"`
}

// A Record is what the log stores: a signature, its author and its content. It is a "hashedrekord" of version 0.0.1.
type Record struct {
	APIVersion string     `json:"apiVersion"`
	Kind       string     `json:"kind"`
	Spec       RecordSpec `json:"spec"`
}

// RecordSpec is the content of a Record.
type RecordSpec struct {
	Data struct {
		Hash struct {
			Algorithm string `json:"algorithm"`
			Value     string `json:"value"`
		} `json:"hash"`
	} `json:"data"`
	Signature struct {
		Content   []byte `json:"content"`
		PublicKey struct {
			Content []byte `json:"content"`
		} `json:"publicKey"`
	} `json:"signature"`
}

// Record adds a signature to the log, unless it is there, and returns the proof in cosign's format. It returns no proof that Crossplane
// would refuse.
func (l *Log) Record(ctx context.Context, message, signature, public []byte) ([]byte, error) {
	answer, err := l.add(ctx, message, signature, public)
	if err == nil {
		err = l.verify(ctx, answer, signature)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot record a signature in the transparency log %s: %w: Crossplane accepts only recorded ones; "+
			"check REKOR_URL and the network, or set SIGN=none for a release without signatures", l.URL, err)
	}
	bundle, err := json.Marshal(struct {
		SignedEntryTimestamp []byte `json:"SignedEntryTimestamp"`
		Payload              Entry  `json:"Payload"`
	}{answer.Verification.SignedEntryTimestamp, answer.Entry})
	if err != nil {
		return nil, fmt.Errorf("cannot keep the proof of the transparency log: %w", err)
	}
	return bundle, nil
}

func (l *Log) add(ctx context.Context, message, signature, public []byte) (Answer, error) {
	record := Record{APIVersion: "0.0.1", Kind: "hashedrekord"}
	digest := sha256.Sum256(message)
	record.Spec.Data.Hash.Algorithm = "sha256"
	record.Spec.Data.Hash.Value = hex.EncodeToString(digest[:])
	record.Spec.Signature.Content = signature
	record.Spec.Signature.PublicKey.Content = public
	body, err := json.Marshal(record)
	if err != nil {
		return Answer{}, fmt.Errorf("cannot encode the entry: %w", err)
	}
	status, header, content, err := l.call(ctx, http.MethodPost, "/api/v1/log/entries", body)
	if err == nil && status == http.StatusConflict { // an earlier run got as far as this
		location, parseErr := url.Parse(header.Get("Location"))
		if parseErr != nil {
			return Answer{}, fmt.Errorf("cannot find the entry that is there already: %w", parseErr)
		}
		status, _, content, err = l.call(ctx, http.MethodGet, location.Path, nil)
	}
	if err != nil {
		return Answer{}, err
	}
	if status != http.StatusCreated && status != http.StatusOK {
		return Answer{}, fmt.Errorf("it answers %s: %s", http.StatusText(status), firstLine(content))
	}
	var entries map[string]Answer
	if err := json.Unmarshal(content, &entries); err != nil {
		return Answer{}, fmt.Errorf("cannot read its answer: %w", err)
	}
	for _, answer := range entries {
		return answer, nil
	}
	return Answer{}, errors.New("its answer has no entry")
}

// verify checks what Crossplane checks: the entry belongs to the signature, and the log has signed it.
func (l *Log) verify(ctx context.Context, answer Answer, signature []byte) error {
	body, err := base64.StdEncoding.DecodeString(answer.Body)
	if err != nil {
		return fmt.Errorf("cannot decode its entry: %w", err)
	}
	var recorded Record
	if err := json.Unmarshal(body, &recorded); err != nil {
		return fmt.Errorf("cannot read its entry: %w", err)
	}
	if !bytes.Equal(recorded.Spec.Signature.Content, signature) {
		return errors.New("it recorded another signature")
	}
	status, _, public, err := l.call(ctx, http.MethodGet, "/api/v1/log/publicKey", nil)
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		return fmt.Errorf("it has no public key: it answers %s", http.StatusText(status))
	}
	block, _ := pem.Decode(public)
	if block == nil {
		return errors.New("its public key is not in PEM")
	}
	if id := sha256.Sum256(block.Bytes); answer.LogID != hex.EncodeToString(id[:]) {
		return errors.New("its entry belongs to another log")
	}
	message, err := json.Marshal(answer.Entry)
	if err != nil {
		return fmt.Errorf("cannot encode its entry: %w", err)
	}
	return Verify(message, answer.Verification.SignedEntryTimestamp, public)
}

func (l *Log) call(ctx context.Context, method, path string, body []byte) (int, http.Header, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, logTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(l.URL, "/")+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, nil, err
	}
	request.Header.Set("Accept", "application/json")
	if strings.HasSuffix(path, "/publicKey") {
		request.Header.Set("Accept", "application/x-pem-file")
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return 0, nil, nil, fmt.Errorf("cannot read its answer: %w", err)
	}
	return response.StatusCode, response.Header, content, nil
}

func firstLine(content []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(content)), "\n")
	return line
}
