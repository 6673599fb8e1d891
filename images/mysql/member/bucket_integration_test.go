// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/repository"
	"github.com/capstan-dev/capstan/test/outside"
)

// bucketName of the backups of a test, and backupKey of what is in it.
const (
	bucketName = "orders-backup"
	backupKey  = "a key of a test, of more than twenty-four characters"
)

// A store is the S3 server of a test with its bucket.
type store struct {
	*outside.S3Server

	client *s3.Client
}

// newStore with an empty bucket.
func newStore(t *testing.T) *store {
	t.Helper()
	server := outside.S3(t)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(server.CA)
	client := s3.New(s3.Options{
		BaseEndpoint: aws.String(server.Endpoint), Region: server.Region, UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(server.AccessKey, server.SecretKey, ""),
		HTTPClient:  &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}},
	})
	if _, err := client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String(bucketName)}); err != nil {
		t.Fatal(err)
	}
	return &store{server, client}
}

// newArchivedCluster is a cluster whose members archive to a bucket, encrypted. Members are not started yet.
func newArchivedCluster(t *testing.T, letters ...string) *cluster {
	t.Helper()
	c := newCluster(t, letters...)
	c.bucket = newStore(t)
	for key, value := range map[string]string{
		"endpoint": c.bucket.Endpoint, "region": c.bucket.Region, "bucket": bucketName, "accessKeyId": c.bucket.AccessKey,
		"secretAccessKey": c.bucket.SecretKey, "ca.crt": string(c.bucket.CA),
	} {
		c.file("backup/"+key, []byte(value))
	}
	c.file("backup-key/"+mysqlmember.FileBackupKey, []byte(backupKey))
	c.config.Backup = &mysqlmember.Backup{
		Enabled: true, Stanza: scope + "-9.7", Path: "/" + c.ns + "/" + database, Queue: 256 << 20, RetentionDays: 30, Encrypted: true,
	}
	c.configure()
	for _, l := range letters {
		c.offer(l, strings.TrimPrefix(c.bucket.Endpoint, "https://"))
	}
	return c
}

// repository as a member opens it.
func (c *cluster) repository() *repository.Repository {
	c.t.Helper()
	r, err := repository.Open(c.t.Context(), repository.Place{
		Path: c.config.Backup.Path, Stanza: c.config.Backup.Stanza, Secret: filepath.Join(c.base, "backup"), Key: filepath.Join(c.base, "backup-key"),
		Scratch: c.t.TempDir(),
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return r
}
