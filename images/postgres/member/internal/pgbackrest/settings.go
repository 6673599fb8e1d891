// SPDX-License-Identifier: Apache-2.0

// Package pgbackrest writes the configuration of pgBackRest, runs it, and understands what it says. Nothing here knows Kubernetes
// but by the files that are mounted.
package pgbackrest

import "github.com/capstan-dev/capstan/images/member/bucket"

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

// NotReadyError is why a Repository cannot be used as long as its Secrets are as they are.
type NotReadyError = bucket.NotReadyError

// ReadRepository from the folder that the connection Secret is mounted to. The error is a *NotReadyError when something is missing
// there.
func ReadRepository(dir string) (Repository, error) {
	c, err := bucket.Read(dir)
	return Repository{
		Host: c.Host, Port: c.Port, Region: c.Region, Bucket: c.Bucket, Key: c.Key, Secret: c.Secret, Token: c.Token, CA: c.CA,
	}, err
}
