// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/capstan-dev/capstan/test/outside"
)

// upload objects into a new bucket.
func upload(t *testing.T, srv *outside.S3Server, bucket string, objects map[string]string) {
	t.Helper()
	c := srv.Client()
	if _, err := c.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &bucket}); err != nil {
		t.Fatal(err)
	}
	for key, content := range objects {
		if _, err := c.PutObject(t.Context(), &s3.PutObjectInput{
			Bucket: &bucket, Key: &key, Body: strings.NewReader(content), ChecksumAlgorithm: types.ChecksumAlgorithmCrc64nvme,
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// secret is the connection Secret of a Bucket.
func secret(srv *outside.S3Server) map[string]string {
	return map[string]string{
		"endpoint": srv.Endpoint, "region": srv.Region, "accessKeyId": srv.AccessKey, "secretAccessKey": srv.SecretKey, "ca.crt": string(srv.CA),
	}
}

// random content that differs from place to place.
func random(size int) string {
	b := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{7}).Read(b)
	return string(b)
}

func TestS3(t *testing.T) {
	model := map[string]string{"model.bin": "weights", "config/a.json": "{}", "empty": ""}
	digest := digestOf(t, folder(t, model))
	for name, srv := range map[string]*outside.S3Server{"VersityGW": outside.SharedS3(t), "Moto": outside.SharedAWS(t)} {
		t.Run(name, func(t *testing.T) {
			upload(t, srv, "models", map[string]string{
				"reco/7/model.bin": "weights", "reco/7/config/a.json": "{}", "reco/7/empty": "", "reco/70/model.bin": "another", "single.onnx": "one",
			})
			fetch := func(credentials map[string]string, uri string, args ...string) (*process, string) {
				cache := t.TempDir()
				return start(t, credentials, append([]string{"--source=" + uri, "--cache=" + cache, "--key=reco"}, args...)...), cache
			}
			p, cache := fetch(secret(srv), "s3://models/reco/7", "--digest="+digest, "--size=9")
			p.succeed()
			holds(t, cache, "reco", model)
			p, cache = fetch(secret(srv), "s3://models/reco/7/")
			p.succeed()
			holds(t, cache, "reco", model)
			p, cache = fetch(secret(srv), "s3://models/single.onnx")
			p.succeed()
			holds(t, cache, "reco", map[string]string{"single.onnx": "one"})
			p, cache = fetch(secret(srv), "s3://models/reco/7", "--digest=sha256:"+strings.Repeat("0", 64))
			p.fail("ModelDigestMismatch: ", digest)
			clean(t, cache)
			if _, err := os.Stat(filepath.Join(cache, "reco")); err == nil {
				t.Error("a model with another digest must not be seen")
			}
			p, _ = fetch(secret(srv), "s3://models/reco/7", "--size=10")
			p.fail("ModelSizeMismatch: ", "9 bytes instead of 10")
			p, _ = fetch(secret(srv), "s3://models/reco/8")
			p.fail("ModelNotFound: ", `"reco/8"`, `"models"`)
			p, _ = fetch(secret(srv), "s3://nothing/reco")
			p.fail("ModelNotFound: ", `"nothing"`)
		})
	}
}

func TestS3Refusals(t *testing.T) {
	srv := outside.SharedS3(t)
	srv.AddUser("stranger", "stranger-secret")
	upload(t, srv, "refusals", map[string]string{"reco/model.bin": "weights"})
	odd := outside.SharedAWS(t)
	upload(t, odd, "refusals", map[string]string{"odd//model.bin": "weights"})
	change := func(key, value string) map[string]string {
		s := secret(srv)
		s[key] = value
		return s
	}
	stranger := change("accessKeyId", "stranger")
	stranger["secretAccessKey"], stranger["bucket"] = "stranger-secret", "theirs"
	cases := map[string]struct {
		reason      string
		credentials map[string]string
		uri         string
		want        string
		holds       string
	}{
		"WrongSecret": {
			reason: "A wrong secret.", credentials: change("secretAccessKey", "wrong"), want: "ModelForbidden: ", holds: "the secret access key is wrong",
		},
		"UnknownKey": {
			reason: "A key that nobody has.", credentials: change("accessKeyId", "nobody"), want: "ModelForbidden: ", holds: "the access key is unknown",
		},
		"Stranger": {
			reason: "Somebody else, whose Secret tells what it is for.", credentials: stranger, want: "ModelForbidden: ", holds: `the credentials are for bucket "theirs"`,
		},
		"Nobody": {
			reason: "No credentials at all.", credentials: map[string]string{"endpoint": srv.Endpoint, "ca.crt": string(srv.CA)}, want: "ModelForbidden: ", holds: "AccessDenied",
		},
		"Authority": {
			reason: "A server that is not trusted.", credentials: change("ca.crt", ""), want: "ModelUnreachable: ", holds: "ca.crt",
		},
		"Down": {
			reason: "Nobody is there.", credentials: change("endpoint", "https://127.0.0.1:9"), want: "ModelUnreachable: ", holds: `"127.0.0.1:9": connection refused`,
		},
		"Odd": {
			reason: "A name that is no file's.", credentials: secret(odd), uri: "s3://refusals/odd", want: "ModelInvalid: ", holds: `"odd//model.bin"`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.uri == "" {
				tc.uri = "s3://refusals/reco"
			}
			p := start(t, tc.credentials, "--source="+tc.uri, "--cache="+t.TempDir(), "--key=reco", "--patience=1s")
			p.fail(tc.want, tc.holds)
			for _, secret := range []string{srv.SecretKey, "stranger-secret"} {
				if strings.Contains(p.stderr.String(), secret) {
					t.Errorf("%s\nthe log holds the secret: %s", tc.reason, p.stderr.String())
				}
			}
		})
	}
}

// TestS3Pages has a model of more objects than a list has at once.
func TestS3Pages(t *testing.T) {
	srv := outside.SharedS3(t)
	model, objects := map[string]string{}, map[string]string{}
	for i := range 1050 {
		name := fmt.Sprintf("shard-%04d", i)
		model[name], objects["reco/"+name] = strconv.Itoa(i), strconv.Itoa(i)
	}
	upload(t, srv, "pages", objects)
	cache := t.TempDir()
	start(t, secret(srv), "--source=s3://pages/reco", "--cache="+cache, "--key=reco", "--digest="+digestOf(t, folder(t, model))).succeed()
	holds(t, cache, "reco", model)
}

// TestS3Large downloads more than memory would hold, while connections break and the server is busy.
func TestS3Large(t *testing.T) {
	srv := outside.SharedS3(t)
	content := random(200 << 20)
	upload(t, srv, "large", map[string]string{"reco/model.bin": content, "reco/config.json": "{}"})
	proxy := outside.Proxy(t, srv.Endpoint, srv.CA)
	s := secret(srv)
	s["endpoint"], s["ca.crt"] = proxy.URL, string(proxy.CA)
	proxy.Fail(outside.Call("GET /large/reco/model.bin"), outside.Truncate(5<<20).Times(3))
	proxy.Fail(outside.Call("GET /large/reco/model.bin"), outside.S3Error(503, "SlowDown", "Slow down.").Times(2))
	proxy.Fail(outside.Call("GET /large/reco/model.bin"), outside.Close().Times(2))
	proxy.Fail(outside.Call("GET /large/reco/config.json"), outside.Truncate(1).Times(1))
	proxy.Fail(outside.Call("GET /large"), outside.Answer(500, "").Times(1))
	cache := t.TempDir()
	p := start(t, s, "--source=s3://large/reco", "--cache="+cache, "--key=reco", "--progress=200ms")
	p.succeed()
	holds(t, cache, "reco", map[string]string{"model.bin": content, "config.json": "{}"})
	for _, line := range []string{`"msg":"downloading","bytes":`, `"total":209715202`, `"msg":"trying again"`, `"msg":"fetched"`} {
		if !strings.Contains(p.stderr.String(), line) {
			t.Errorf("want %s in the log, got:\n%s", line, p.stderr.String())
		}
	}

	// Nothing is downloaded a second time.
	proxy.Reset()
	start(t, s, "--source=s3://large/reco", "--cache="+cache, "--key=reco").succeed()
	if got := proxy.Requests(); len(got) > 0 {
		t.Errorf("want no request for a model that is there, got %v", got)
	}

	// Unless it is damaged.
	if err := os.Truncate(filepath.Join(cache, "reco", "config.json"), 1); err != nil {
		t.Fatal(err)
	}
	p = start(t, s, "--source=s3://large/reco", "--cache="+cache, "--key=reco")
	p.succeed()
	holds(t, cache, "reco", map[string]string{"model.bin": content, "config.json": "{}"})
}

// TestS3Checksum shows that content is compared with what the server says about it.
func TestS3Checksum(t *testing.T) {
	srv := outside.SharedS3(t)
	upload(t, srv, "checksum", map[string]string{"reco/model.bin": "weights"})
	head, err := srv.Client().HeadObject(t.Context(), &s3.HeadObjectInput{
		Bucket: aws.String("checksum"), Key: aws.String("reco/model.bin"), ChecksumMode: types.ChecksumModeEnabled,
	})
	if err != nil || head.ChecksumCRC64NVME == nil {
		t.Fatalf("the server keeps no checksum: %v", err)
	}
	proxy := outside.Proxy(t, srv.Endpoint, srv.CA)
	s := secret(srv)
	s["endpoint"], s["ca.crt"] = proxy.URL, string(proxy.CA)
	proxy.Fail(outside.Call("GET /checksum/reco/model.bin"), outside.Answer(200, "wEIGHTS", "x-amz-checksum-crc64nvme", *head.ChecksumCRC64NVME).Times(1))
	cache := t.TempDir()
	start(t, s, "--source=s3://checksum/reco", "--cache="+cache, "--key=reco").fail("ModelDigestMismatch: ", "CRC64NVME", *head.ChecksumCRC64NVME)
	start(t, s, "--source=s3://checksum/reco", "--cache="+cache, "--key=reco").succeed()
	holds(t, cache, "reco", map[string]string{"model.bin": "weights"})
}

// TestS3Replaced shows that a model is never put together from two.
func TestS3Replaced(t *testing.T) {
	srv := outside.SharedS3(t)
	upload(t, srv, "replaced", map[string]string{"reco/model.bin": random(40 << 20)})
	proxy := outside.Proxy(t, srv.Endpoint, srv.CA)
	s := secret(srv)
	s["endpoint"], s["ca.crt"] = proxy.URL, string(proxy.CA)
	replaced := false
	proxy.Fail(func(r *http.Request) bool {
		if strings.HasPrefix(r.Header.Get("Range"), "bytes=0-") && !replaced {
			replaced = true
			if _, err := srv.Client().PutObject(t.Context(), &s3.PutObjectInput{
				Bucket: aws.String("replaced"), Key: aws.String("reco/model.bin"), Body: strings.NewReader(strings.Repeat("x", 40<<20)),
			}); err != nil {
				t.Error(err)
			}
		}
		return false
	}, outside.Close())
	start(t, s, "--source=s3://replaced/reco", "--cache="+t.TempDir(), "--key=reco").fail("ModelInvalid: ", "was replaced while it was downloaded")
}

// TestShared has pods with one volume. The one that downloads is killed without a word.
func TestShared(t *testing.T) {
	srv := outside.SharedS3(t)
	content := random(100 << 20)
	upload(t, srv, "shared", map[string]string{"reco/model.bin": content})
	proxy := outside.Proxy(t, srv.Endpoint, srv.CA)
	s := secret(srv)
	s["endpoint"], s["ca.crt"] = proxy.URL, string(proxy.CA)
	// The last part hangs, so that it is in the middle when it is killed.
	proxy.Fail(func(r *http.Request) bool { return strings.HasPrefix(r.Header.Get("Range"), "bytes=100663296-") }, outside.Hang().Times(1))
	cache := t.TempDir()
	args := []string{"--source=s3://shared/reco", "--cache=" + cache, "--key=reco", "--stale=2s"}
	first := start(t, s, args...)
	await(t, "a download under way", func() bool { return proxy.Count() > 7 })
	others := []*process{start(t, s, args...), start(t, s, args...)}
	await(t, "the others to wait", func() bool {
		n := 0
		for _, p := range others {
			if strings.Contains(p.stderr.String(), "waiting for another pod") {
				n++
			}
		}
		return n == len(others)
	})
	if err := first.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_, _ = first.wait()
	if _, err := os.Stat(filepath.Join(cache, "reco")); err == nil {
		t.Fatal("a part of a model must not be seen")
	}
	proxy.Reset()
	for _, p := range others {
		p.succeed()
	}
	holds(t, cache, "reco", map[string]string{"model.bin": content})
	parts := 0
	for _, r := range proxy.Requests() {
		if strings.HasPrefix(r, "GET /shared/reco/model.bin") {
			parts++
		}
	}
	if parts != 7 {
		t.Errorf("want one of the others to download 7 parts and the other none, got %d", parts)
	}
}

// TestSignal shows that a signal ends it at once, and that nothing is left.
func TestSignal(t *testing.T) {
	srv := outside.SharedS3(t)
	upload(t, srv, "signal", map[string]string{"reco/model.bin": random(40 << 20)})
	proxy := outside.Proxy(t, srv.Endpoint, srv.CA)
	s := secret(srv)
	s["endpoint"], s["ca.crt"] = proxy.URL, string(proxy.CA)
	proxy.Fail(func(r *http.Request) bool { return strings.HasPrefix(r.Header.Get("Range"), "bytes=0-") }, outside.Hang())
	cache := t.TempDir()
	p := start(t, s, "--source=s3://signal/reco", "--cache="+cache, "--key=reco")
	await(t, "a download under way", func() bool { return proxy.Count() > 3 })
	begun := time.Now()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code, words := p.wait(); code != 143 || words != "" {
		t.Errorf("want exit code 143 without last words, got %d: %s", code, words)
	}
	if took := time.Since(begun); took > 2*time.Second {
		t.Errorf("want it to end at once, took %s", took)
	}
	clean(t, cache)
	if _, err := os.Stat(filepath.Join(cache, "reco")); err == nil {
		t.Error("a part of a model must not be seen")
	}
	if !strings.Contains(p.stderr.String(), "ended by a signal") {
		t.Errorf("want the log to say why, got:\n%s", p.stderr.String())
	}
}
