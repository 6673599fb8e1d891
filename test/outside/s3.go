// SPDX-License-Identifier: Apache-2.0

package outside

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// region is the region that other S3 servers also use.
const region = "us-east-1"

// An S3Server serves S3 requests at Endpoint, with the bucket in the path.
type S3Server struct {
	*server

	// Endpoint as in https://127.0.0.1:4711; CA (PEM) has signed the certificate.
	Endpoint string
	CA       []byte
	// AccessKey and SecretKey belong to the root account, which has all rights.
	AccessKey, SecretKey string
	Region               string

	tb    testing.TB
	admin string
}

// S3 starts VersityGW. Buckets can be versioned and locked; hack/cluster/README.md lists what it does not implement.
func S3(tb testing.TB) *S3Server {
	tb.Helper()
	gateway := program(tb, "versitygw", "versitygw")
	s := &S3Server{
		server: newServer(tb, "versitygw"), tb: tb, admin: gateway,
		AccessKey: "capstan-root", SecretKey: "capstan-root-secret", Region: region,
	}
	s.Endpoint, s.CA = s.url, s.authority
	s.args = []string{
		gateway, "--port=" + loopback + ":" + s.port, "--cert=" + s.certFile, "--key=" + s.keyFile, "--region=" + region,
		"--access=" + s.AccessKey, "--secret=" + s.SecretKey, "--iam-dir=" + s.folder(tb, "accounts"), "--quiet",
		"posix", "--versioning-dir=" + s.folder(tb, "versions"), s.folder(tb, "buckets"),
	}
	s.env = environment()
	s.ready = func() error { return s.answers("/", 0) }
	s.run(tb)
	return s
}

// AWS starts moto, which behaves like AWS also where VersityGW returns NotImplemented: lifecycle rules, encryption,
// public access blocks. It accepts any credentials, and Stop deletes its data.
func AWS(tb testing.TB) *S3Server {
	tb.Helper()
	s := &S3Server{
		server: newServer(tb, "moto"), tb: tb,
		AccessKey: "capstan-root", SecretKey: "capstan-root-secret", Region: region,
	}
	s.Endpoint, s.CA = s.url, s.authority
	s.args = []string{
		program(tb, "moto", filepath.Join("bin", "python3")), "-m", "moto.server",
		"--host=" + loopback, "--port=" + s.port, "--ssl-cert=" + s.certFile, "--ssl-key=" + s.keyFile,
	}
	s.env = environment()
	s.ready = func() error { return s.answers("/moto-api/data.json", 200) }
	s.run(tb)
	return s
}

// Stop makes the server unreachable until Start.
func (s *S3Server) Stop() { s.stop() }

// Start starts a stopped server again with the same port, certificate and data.
func (s *S3Server) Start() {
	s.tb.Helper()
	s.start(s.tb)
}

// AddUser creates a second account. It can create its own buckets and has no right to others. Only S3 has accounts.
func (s *S3Server) AddUser(access, secret string) {
	s.tb.Helper()
	if s.admin == "" {
		s.tb.Fatalf("cannot add account %q: %s has none", access, s.name)
	}
	//nolint:gosec // the program is the one that serves
	cmd := exec.Command(s.admin, "admin", "--endpoint-url="+s.Endpoint, "--access="+s.AccessKey, "--secret="+s.SecretKey,
		"--region="+s.Region, "--allow-insecure", "create-user", "--access="+access, "--secret="+secret, "--role=userplus")
	cmd.Env = environment()
	if out, err := cmd.CombinedOutput(); err != nil {
		s.tb.Fatalf("cannot add account %q: %v: %s", access, err, out)
	}
}

// Client of the server, with the root account.
func (s *S3Server) Client() *s3.Client {
	return s3.New(s3.Options{
		BaseEndpoint: aws.String(s.Endpoint), Region: s.Region, UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(s.AccessKey, s.SecretKey, ""), HTTPClient: Client(s.CA),
	})
}

// Bucket makes a bucket. It returns what the connection Secret of a Bucket has, with the root account.
func (s *S3Server) Bucket(name string) map[string]string {
	s.tb.Helper()
	if _, err := s.Client().CreateBucket(s.tb.Context(), &s3.CreateBucketInput{Bucket: &name}); err != nil {
		s.tb.Fatal(err)
	}
	return map[string]string{
		"endpoint": s.Endpoint, "region": s.Region, "bucket": name, "accessKeyId": s.AccessKey, "secretAccessKey": s.SecretKey, "ca.crt": string(s.CA),
	}
}
