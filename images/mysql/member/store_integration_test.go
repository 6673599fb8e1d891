// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	cryptotls "crypto/tls"
	"crypto/x509"
	"io"
	"net"
	nethttp "net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/capstan-dev/capstan/test/outside"
)

// bucket of the backups of a test.
const bucket = "orders-backup"

// A store is the S3 server of a test with its bucket.
type store struct {
	*outside.S3Server

	t      *testing.T
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
		HTTPClient: http.NewBuildableClient().WithTransportOptions(func(tr *nethttp.Transport) {
			tr.TLSClientConfig = &cryptotls.Config{RootCAs: pool, MinVersion: cryptotls.VersionTLS12}
		}),
	})
	if _, err := client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String(bucket)}); err != nil {
		t.Fatal(err)
	}
	return &store{server, t, client}
}

// connect a cluster: the connection Secret of the bucket is in a folder, and the pods of these letters reach it where it is on the machine.
func (s *store) connect(c *cluster, folder string, letters ...string) {
	c.t.Helper()
	for key, value := range map[string]string{
		"endpoint": s.Endpoint, "region": s.Region, "bucket": bucket, "accessKeyId": s.AccessKey, "secretAccessKey": s.SecretKey, "ca.crt": string(s.CA),
	} {
		c.file(folder+"/"+key, []byte(value))
	}
	at, err := url.Parse(s.Endpoint)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, l := range letters {
		if _, err := os.Stat(c.netns(l)); err != nil {
			c.network(l)
		}
		listener, err := listenIn(c.netns(l), at.Host)
		if err != nil {
			c.t.Fatal(err)
		}
		c.t.Cleanup(func() { _ = listener.Close() })
		go func() {
			for {
				from, err := listener.Accept()
				if err != nil {
					return
				}
				go pass(from, at.Host)
			}
		}()
	}
}

// pass a connection on.
func pass(from net.Conn, address string) {
	defer func() { _ = from.Close() }()
	to, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer func() { _ = to.Close() }()
	done := make(chan struct{}, 2)
	for _, pair := range [][2]net.Conn{{from, to}, {to, from}} {
		go func() {
			_, _ = io.Copy(pair[0], pair[1])
			done <- struct{}{}
		}()
	}
	<-done
}

// keys of the objects whose key has all of these words.
func (s *store) keys(words ...string) (out []string) {
	s.t.Helper()
	for pages := s3.NewListObjectsV2Paginator(s.client, &s3.ListObjectsV2Input{Bucket: aws.String(bucket)}); pages.HasMorePages(); {
		page, err := pages.NextPage(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
	objects:
		for _, o := range page.Contents {
			for _, w := range words {
				if !strings.Contains(*o.Key, w) {
					continue objects
				}
			}
			out = append(out, *o.Key)
		}
	}
	return out
}

// change an object: its content, by a function; nil deletes it. It returns what puts it back.
func (s *store) change(key string, by func([]byte) []byte) (back func()) {
	s.t.Helper()
	got, err := s.client.GetObject(s.t.Context(), &s3.GetObjectInput{Bucket: aws.String(bucket), Key: aws.String(key)})
	if err != nil {
		s.t.Fatal(err)
	}
	before, err := io.ReadAll(got.Body)
	_ = got.Body.Close()
	if err != nil {
		s.t.Fatal(err)
	}
	put := func(content []byte) {
		s.t.Helper()
		if _, err := s.client.PutObject(s.t.Context(), &s3.PutObjectInput{Bucket: aws.String(bucket), Key: aws.String(key), Body: strings.NewReader(string(content))}); err != nil {
			s.t.Fatal(err)
		}
	}
	if by == nil {
		if _, err := s.client.DeleteObject(s.t.Context(), &s3.DeleteObjectInput{Bucket: aws.String(bucket), Key: aws.String(key)}); err != nil {
			s.t.Fatal(err)
		}
	} else {
		put(by([]byte(string(before))))
	}
	return func() { put(before) }
}
