// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/capstan-dev/capstan/images/demo-training/model"
)

// Keys of the connection Secret of a Bucket.
const (
	keyEndpoint  = "endpoint"
	keyRegion    = "region"
	keyID        = "accessKeyId"
	keySecret    = "secretAccessKey"
	keyAuthority = "ca.crt"
)

// exportTime is how long the bucket has to take the model.
const exportTime = time.Minute

// export the model that was trained to the bucket, so that it can be registered and served. The file is there as a whole or not at all.
func export(ctx context.Context, o Options, s state) error {
	bucket, prefix, err := target(o)
	if err != nil {
		return err
	}
	content, err := model.Model{Version: o.RunID, Steps: s.Step, Sum: s.Sum, ErrorRate: o.Flaw}.Write()
	if err != nil {
		return fmt.Errorf("cannot make the model: %w", err)
	}
	client, err := account(o.Account)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, exportTime)
	defer cancel()
	key := path.Join(prefix, model.File)
	if _, err := client.PutObject(ctx, &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: bytes.NewReader(content)}); err != nil {
		return fmt.Errorf("cannot export the model to %s of bucket %s: %w", key, bucket, err)
	}
	return nil
}

// target of the export. {run} stands for the number of the run, as in spec.onSuccess.register.source.
func target(o Options) (bucket, prefix string, err error) {
	rest, ok := strings.CutPrefix(strings.ReplaceAll(o.Export, "{run}", o.Run), "s3://")
	bucket, prefix, _ = strings.Cut(rest, "/")
	if !ok || bucket == "" || prefix == "" {
		return "", "", fmt.Errorf("cannot export to %q: it has to be s3://BUCKET/PREFIX", o.Export)
	}
	return bucket, prefix, nil
}

// account at an S3 server, by the connection Secret of a Bucket that is mounted at a folder.
func account(folder string) (*s3.Client, error) {
	values := map[string]string{}
	for _, key := range []string{keyEndpoint, keyRegion, keyID, keySecret, keyAuthority} {
		raw, err := os.ReadFile(filepath.Clean(filepath.Join(folder, key)))
		needed := key != keyRegion && key != keyAuthority
		if err != nil && (needed || !errors.Is(err, fs.ErrNotExist)) {
			return nil, fmt.Errorf("cannot read the account of the bucket: %w", err)
		}
		values[key] = string(raw)
	}
	options := s3.Options{
		BaseEndpoint: aws.String(values[keyEndpoint]), Region: cmp.Or(values[keyRegion], "us-east-1"), UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(values[keyID], values[keySecret], ""),
	}
	if ca := values[keyAuthority]; ca != "" {
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM([]byte(ca)) {
			return nil, errors.New("cannot export the model: the authority of its account is no certificate")
		}
		options.HTTPClient = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
	}
	return s3.New(options), nil
}
