// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"path/filepath"
	"strings"
	"testing"

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

// newArchivedCluster is a cluster whose members archive to a bucket, encrypted. Members are not started yet.
func newArchivedCluster(t *testing.T, letters ...string) *cluster {
	t.Helper()
	c := newCluster(t, letters...)
	server := outside.S3(t)
	c.bucket = &store{server, server.Client()}
	for key, value := range server.Bucket(bucketName) {
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
		Server: servedAt(c.config.Backup.Repository), Scratch: c.t.TempDir(),
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return r
}
