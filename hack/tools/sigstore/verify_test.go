// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"
	"io"
	stdlog "log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/xpkg/signature"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"github.com/crossplane/crossplane/apis/v2/pkg/v1beta1"

	"github.com/capstan-dev/capstan/hack/internal/cosign"
	"github.com/capstan-dev/capstan/hack/internal/cosign/logtest"
)

// logVariable names the file with a log's public key, and rootsVariable the folder for roots, when this test writes roots.
const (
	logVariable   = "TEST_LOG"
	rootsVariable = "TEST_ROOTS"
)

// TestMain writes roots when it is asked to. Sigstore's library keeps them in memory, and Crossplane is another process.
func TestMain(m *testing.M) {
	folder := os.Getenv(rootsVariable)
	if folder == "" {
		os.Exit(m.Run())
	}
	public, err := os.ReadFile(os.Getenv(logVariable))
	if err == nil {
		err = writeRoots(folder, public)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// TestCrossplaneVerifies has the code that verifies signatures in Crossplane look at ours.
func TestCrossplaneVerifies(t *testing.T) {
	trusted, err := logtest.New()
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := logtest.New()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	t.Setenv("TUF_ROOT", filepath.Join(folder, "root"))
	public := filepath.Join(t.TempDir(), "log.pub")
	if err := os.WriteFile(public, trusted.Public(), 0o600); err != nil {
		t.Fatal(err)
	}
	other := exec.CommandContext(t.Context(), os.Args[0])
	other.Env = append(os.Environ(), rootsVariable+"="+folder, logVariable+"="+public)
	if out, err := other.CombinedOutput(); err != nil {
		t.Fatalf("cannot write roots: %v\n%s", err, out)
	}
	if err := os.RemoveAll(filepath.Join(folder, "repository-of-roots")); err != nil {
		t.Fatal(err)
	}
	key, stranger := newKey(t), newKey(t)
	secrets := reader{public: key.Public()}
	validator, err := signature.NewCosignValidator(secrets, fake.NewClientset(), "crossplane-system", "crossplane")
	if err != nil {
		t.Fatalf("Crossplane would not start: %v", err)
	}
	server := httptest.NewServer(registry.New(registry.Logger(stdlog.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)

	cases := map[string]struct {
		reason string
		key    *cosign.Key
		log    *logtest.Log
		signs  func(pushed, other v1.Hash) v1.Hash
		want   string
	}{
		"Signed":     {reason: "what make release signs is accepted", key: key, log: trusted},
		"Unsigned":   {reason: "what nobody signed is refused", want: "no signatures found"},
		"OtherKey":   {reason: "anybody can sign, but only one key counts", key: stranger, log: trusted, want: "signature verification failed"},
		"OtherLog":   {reason: "the log has to be one that the roots name", key: key, log: foreign, want: "rekor log public key not found"},
		"OtherImage": {reason: "a signature that was copied to changed content does not count", key: key, log: trusted, signs: func(_, other v1.Hash) v1.Hash { return other }, want: "signature verification failed"},
	}
	for label, tc := range cases {
		t.Run(label, func(t *testing.T) {
			repository, err := name.NewRepository(fmt.Sprintf("%s/capstan-dev/%s", strings.TrimPrefix(server.URL, "http://"), strings.ToLower(label)))
			if err != nil {
				t.Fatal(err)
			}
			index, err := random.Index(64, 1, 2)
			if err != nil {
				t.Fatal(err)
			}
			digest, err := index.Digest()
			if err != nil {
				t.Fatal(err)
			}
			if err := remote.WriteIndex(repository.Digest(digest.String()), index); err != nil {
				t.Fatal(err)
			}
			if tc.key != nil {
				signed := digest
				if tc.signs != nil {
					signed = tc.signs(digest, v1.Hash{Algorithm: "sha256", Hex: strings.Repeat("ab", 32)})
				}
				log := httptest.NewServer(tc.log)
				t.Cleanup(log.Close)
				signatures, err := tc.key.SignImage(t.Context(), &cosign.Log{URL: log.URL}, repository.String(), signed, nil)
				if err != nil {
					t.Fatal(err)
				}
				if err := remote.Write(repository.Tag(cosign.Tag(digest)), signatures); err != nil {
					t.Fatal(err)
				}
			}
			config := &v1beta1.ImageVerification{
				Provider: v1beta1.ImageVerificationProviderCosign,
				Cosign: &v1beta1.CosignVerificationConfig{Authorities: []v1beta1.CosignAuthority{{
					Name: "capstan",
					Key: &v1beta1.KeyRef{
						SecretRef:     v1beta1.LocalSecretKeySelector{LocalSecretReference: xpv2.LocalSecretReference{Name: "capstan-cosign"}, Key: "cosign.pub"},
						HashAlgorithm: "sha256",
					},
				}}},
			}
			err = validator.Validate(t.Context(), repository.Digest(digest.String()), config)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%s: want %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}

// A reader has the one Secret that verification.yaml makes.
type reader struct {
	client.Reader

	public []byte
}

func (r reader) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	object.(*corev1.Secret).Data = map[string][]byte{"cosign.pub": r.public}
	return nil
}

func newKey(t *testing.T) *cosign.Key {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := cosign.NewKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
