// SPDX-License-Identifier: Apache-2.0

// Package pgbackrest writes the configuration of pgBackRest, runs it, and understands what it says. Nothing here knows Kubernetes
// but by the files that are mounted.
package pgbackrest

import (
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/capstan-dev/capstan/images/member/bucket"
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
	// Identity opens the bucket, if its Secret has no keys.
	Identity *bucket.Identity
	// Passphrase that it is encrypted with, if it is.
	Passphrase string
}

// NotReadyError is why a Repository cannot be used as long as its Secrets are as they are.
type NotReadyError = bucket.NotReadyError

// ReadRepository from the folder that the connection Secret is mounted to. The error is a *NotReadyError when something is missing
// there.
func ReadRepository(dir string) (Repository, error) {
	c, err := bucket.Read(dir, bucket.OwnIdentity())
	return Repository{
		Host: c.Host, Port: c.Port, Region: c.Region, Bucket: c.Bucket, Key: c.Key, Secret: c.Secret, Token: c.Token, CA: c.CA, Identity: c.Identity,
	}, err
}

// Keys of a bucket for requests beside pgBackRest's.
func (r Repository) Keys(client *http.Client) aws.CredentialsProvider {
	return bucket.Connection{Key: r.Key, Secret: r.Secret, Token: r.Token, Identity: r.Identity}.Keys(client)
}

// keys are the options that open a bucket. pgBackRest knows role and token by the variables of its environment, reads the token
// again, and renews the keys that it gets.
func (r Repository) keys() []Option {
	if i := r.Identity; i != nil {
		return []Option{{"repo1-s3-key-type", "web-id"}, {"repo1-s3-sts-host", i.STS}}
	}
	return []Option{{"repo1-s3-key", r.Key}, {"repo1-s3-key-secret", r.Secret}, {"repo1-s3-token", r.Token}}
}
