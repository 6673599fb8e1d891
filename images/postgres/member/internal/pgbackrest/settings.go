// SPDX-License-Identifier: Apache-2.0

// Package pgbackrest writes the configuration of pgBackRest, runs it, and understands what it says. Nothing here knows Kubernetes
// but by the files that are mounted.
package pgbackrest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Program is pgBackRest.
const Program = "/usr/bin/pgbackrest"

// A Repository is a bucket, as the connection Secret of a Bucket describes it, or a volume.
type Repository struct {
	Host, Port, Region, Bucket, Key, Secret, Token string
	// Served is how to reach the host that serves a volume, and Local the folder on that host. Nil and "" for a bucket.
	Served *Served
	Local  string
	// CA is the file of the authority of the server, if it is not one that everybody trusts.
	CA string
	// Passphrase that it is encrypted with, if it is.
	Passphrase string
}

// NotReady is why a Repository cannot be used as long as its Secret is as it is.
type NotReady struct { //nolint:errname // It is for a person.
	Message string
	// Key is one of members.Key… when it is the key that is wrong.
	Key string
}

func (n *NotReady) Error() string { return n.Message }

// ReadRepository from the folder that the connection Secret is mounted to. The error is a *NotReady when something is missing
// there.
func ReadRepository(dir string) (Repository, error) {
	value := map[string]string{}
	for _, key := range []string{"endpoint", "region", "bucket", "accessKeyId", "secretAccessKey", "sessionToken"} {
		raw, err := os.ReadFile(filepath.Join(dir, key))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return Repository{}, fmt.Errorf("cannot read the connection of the bucket: %w", err)
		}
		text := strings.TrimSpace(string(raw))
		if strings.ContainsAny(text, "\n\r\x00") {
			return Repository{}, &NotReady{Message: fmt.Sprintf("the value %s of the bucket's connection Secret has more than one line: correct it", key)}
		}
		value[key] = text
	}
	if len(value) == 0 {
		return Repository{}, &NotReady{Message: "the connection Secret of the bucket is not there: see the Bucket, and whether provider-capstan runs"}
	}
	for _, key := range []string{"endpoint", "region", "bucket", "accessKeyId", "secretAccessKey"} {
		if value[key] == "" {
			message := "the connection Secret of the bucket has no " + key
			if strings.HasSuffix(key, "Id") || strings.HasSuffix(key, "Key") {
				message += ": let the provider's config give workloadCredentials to those who use buckets"
			}
			return Repository{}, &NotReady{Message: message}
		}
	}
	rest, ok := strings.CutPrefix(value["endpoint"], "https://")
	rest = strings.TrimRight(rest, "/")
	if !ok || rest == "" || strings.Contains(rest, "/") {
		return Repository{}, &NotReady{Message: fmt.Sprintf("the endpoint %q cannot be used: backups need https://, and nothing behind the host", value["endpoint"])}
	}
	host, port := rest, "443"
	if i := strings.LastIndexByte(rest, ':'); i > strings.LastIndexByte(rest, ']') {
		host, port = rest[:i], rest[i+1:]
	}
	r := Repository{
		Host: strings.Trim(host, "[]"), Port: port, Region: value["region"], Bucket: value["bucket"],
		Key: value["accessKeyId"], Secret: value["secretAccessKey"], Token: value["sessionToken"],
	}
	if _, err := os.Stat(filepath.Join(dir, "ca.crt")); err == nil {
		r.CA = filepath.Join(dir, "ca.crt")
	}
	return r, nil
}
