// SPDX-License-Identifier: Apache-2.0

// Package bucket reads how a bucket of backups is reached, and the key that they are encrypted with, from the Secrets that pods mount.
package bucket

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/capstan-dev/capstan/apis/members"
)

const (
	// LeastKey is how many characters a key has at least: what 16 random bytes take in base64. A cipher's key is derived with a hash,
	// which does nothing for one that can be guessed.
	LeastKey = 24
	// MostKey is how many characters a key has at most.
	MostKey = 1024
)

// printable ASCII in one line. Others would be cut or take part in the form of a configuration.
var printable = regexp.MustCompile(`^[ -~]*$`)

// NotReadyError is why a bucket cannot be used as long as its Secrets are as they are.
type NotReadyError struct {
	Message string
	// Key is one of members.Key… when it is the key that is wrong.
	Key string
}

func (n *NotReadyError) Error() string { return n.Message }

// A Connection of a bucket, as its connection Secret describes it.
type Connection struct {
	Host, Port, Region, Bucket, Key, Secret, Token string
	// CA is the file of the authority of the server, if it is not one that everybody trusts.
	CA string
	// Identity opens it where the Secret has no keys.
	Identity *Identity
}

// Read the connection from the folder that its Secret is mounted to. Where that has no keys, an identity opens the bucket, if there is
// one. The error is a *NotReadyError when something is missing there.
func Read(dir string, own *Identity) (Connection, error) {
	value, err := values(dir)
	if err != nil {
		return Connection{}, err
	}
	if len(value) == 0 {
		return Connection{}, &NotReadyError{Message: "the connection Secret of the bucket is not there: see the Bucket, and whether provider-capstan runs"}
	}
	keys := []string{"accessKeyId", "secretAccessKey"}
	if own != nil && value[keys[0]] == "" && value[keys[1]] == "" {
		keys = nil
	}
	for _, key := range append([]string{"endpoint", "region", "bucket"}, keys...) {
		if value[key] == "" {
			message := "the connection Secret of the bucket has no " + key
			if slices.Contains(keys, key) {
				message += ": let the provider's config give workloadCredentials to those who use buckets, or set spec.workloadIdentity where the engine has it"
			}
			return Connection{}, &NotReadyError{Message: message}
		}
	}
	rest, ok := strings.CutPrefix(value["endpoint"], "https://")
	rest = strings.TrimRight(rest, "/")
	if !ok || rest == "" || strings.Contains(rest, "/") {
		return Connection{}, &NotReadyError{Message: fmt.Sprintf("the endpoint %q cannot be used: backups need https://, and nothing behind the host", value["endpoint"])}
	}
	host, port := rest, "443"
	if i := strings.LastIndexByte(rest, ':'); i > strings.LastIndexByte(rest, ']') {
		host, port = rest[:i], rest[i+1:]
	}
	c := Connection{
		Host: strings.Trim(host, "[]"), Port: port, Region: value["region"], Bucket: value["bucket"],
		Key: value["accessKeyId"], Secret: value["secretAccessKey"], Token: value["sessionToken"],
	}
	if _, err := os.Stat(filepath.Join(dir, "ca.crt")); err == nil {
		c.CA = filepath.Join(dir, "ca.crt")
	}
	if keys == nil {
		if c.Identity, err = own.at(c); err != nil {
			return Connection{}, err
		}
	}
	return c, nil
}

// values of a connection Secret, each in one line.
func values(dir string) (map[string]string, error) {
	value := map[string]string{}
	for _, key := range []string{"endpoint", "region", "bucket", "accessKeyId", "secretAccessKey", "sessionToken"} {
		raw, err := os.ReadFile(filepath.Join(dir, key))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read the connection of the bucket: %w", err)
		}
		text := strings.TrimSpace(string(raw))
		if strings.ContainsAny(text, "\n\r\x00") {
			return nil, &NotReadyError{Message: fmt.Sprintf("the value %s of the bucket's connection Secret has more than one line: correct it", key)}
		}
		value[key] = text
	}
	return value, nil
}

// ReadKey from a file. The error is a *NotReadyError when it is missing or cannot be a key, without a word of it.
func ReadKey(file string) (string, error) {
	raw, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", &NotReadyError{
			Message: "the Secret with the key that backups are encrypted with is not there, or has no such value: bring it back", Key: members.KeyMissing,
		}
	}
	if err != nil {
		return "", fmt.Errorf("cannot read the key of backups: %w", err)
	}
	text := strings.TrimSpace(string(raw))
	if n := len(text); n < LeastKey || n > MostKey || !printable.MatchString(text) {
		return "", &NotReadyError{
			Message: fmt.Sprintf("the key that backups are encrypted with has to be one line of %d to %d printable ASCII characters: correct it", LeastKey, MostKey),
			Key:     members.KeyInvalid,
		}
	}
	return text, nil
}
