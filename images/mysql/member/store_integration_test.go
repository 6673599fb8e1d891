// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"io"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// keys of the objects whose key has all of these words.
func (s *store) keys(t *testing.T, words ...string) (out []string) {
	t.Helper()
	for pages := s3.NewListObjectsV2Paginator(s.client, &s3.ListObjectsV2Input{Bucket: aws.String(bucketName)}); pages.HasMorePages(); {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
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
func (s *store) change(t *testing.T, key string, by func([]byte) []byte) (back func()) {
	t.Helper()
	got, err := s.client.GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String(bucketName), Key: aws.String(key)})
	if err != nil {
		t.Fatal(err)
	}
	before, err := io.ReadAll(got.Body)
	_ = got.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	put := func(content []byte) {
		t.Helper()
		if _, err := s.client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String(bucketName), Key: aws.String(key), Body: strings.NewReader(string(content))}); err != nil {
			t.Fatal(err)
		}
	}
	if by == nil {
		if _, err := s.client.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: aws.String(bucketName), Key: aws.String(key)}); err != nil {
			t.Fatal(err)
		}
	} else {
		put(by([]byte(string(before))))
	}
	return func() { put(before) }
}
