// SPDX-License-Identifier: Apache-2.0

package cosign_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/secure-systems-lab/go-securesystemslib/encrypted"

	"github.com/capstan-dev/capstan/hack/internal/cosign"
	"github.com/capstan-dev/capstan/hack/internal/cosign/logtest"
)

const repository = "registry.example.org/capstan-dev/capstan"

func TestLoad(t *testing.T) {
	private := newPrivate(t, elliptic.P256())
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	sec1, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := encrypted.Encrypt(pkcs8, []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	large, err := x509.MarshalPKCS8PrivateKey(newPrivate(t, elliptic.P384()))
	if err != nil {
		t.Fatal(err)
	}
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := x509.MarshalPKCS8PrivateKey(other)
	if err != nil {
		t.Fatal(err)
	}
	encode := func(kind string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}) }
	cases := map[string]struct {
		reason   string
		key      []byte
		password string
		want     string
	}{
		"Encrypted":     {reason: "cosign writes such keys", key: encode("ENCRYPTED SIGSTORE PRIVATE KEY", sealed), password: "secret"},
		"EncryptedOld":  {reason: "older versions of cosign wrote such keys", key: encode("ENCRYPTED COSIGN PRIVATE KEY", sealed), password: "secret"},
		"PKCS8":         {reason: "a key may have no password", key: encode("PRIVATE KEY", pkcs8)},
		"OpenSSL":       {reason: "openssl writes parameters first", key: append(encode("EC PARAMETERS", []byte{6}), encode("EC PRIVATE KEY", sec1)...)},
		"WrongPassword": {reason: "one line names the remedy", key: encode("ENCRYPTED SIGSTORE PRIVATE KEY", sealed), password: "guess", want: "set COSIGN_PASSWORD"},
		"NoKey":         {reason: "text is no key", key: []byte("secret"), want: "it is no private key in PEM"},
		"PublicKey":     {reason: "the public half cannot sign", key: encode("PUBLIC KEY", pkcs8), want: `cannot use a "PUBLIC KEY"`},
		"P384":          {reason: "verifiers expect SHA-256 and P-256", key: encode("PRIVATE KEY", large), want: "use one of P-256"},
		"RSA":           {reason: "only one kind is supported", key: encode("PRIVATE KEY", foreign), want: "use an ECDSA key of P-256"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "cosign.key")
			if err := os.WriteFile(file, tc.key, 0o600); err != nil {
				t.Fatal(err)
			}
			t.Setenv("TEST_KEY", string(tc.key))
			for _, reference := range []string{file, "env://TEST_KEY"} {
				key, err := cosign.Load(reference, tc.password)
				if tc.want != "" {
					if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
						t.Errorf("%s: want one line with %q, got %v", tc.reason, tc.want, err)
					}
					continue
				}
				if err != nil {
					t.Fatalf("%s: %v", tc.reason, err)
				}
				der, _ := pem.Decode(key.Public())
				public, err := x509.ParsePKIXPublicKey(der.Bytes)
				if err != nil || !private.PublicKey.Equal(public) {
					t.Errorf("%s: the public key is another one, %v", tc.reason, err)
				}
			}
		})
	}
	for reference, want := range map[string]string{
		"":                        "or set SIGN=none",
		"env://TEST_NO_SUCH_KEY":  "the environment variable TEST_NO_SUCH_KEY is empty",
		"/no/such/folder/key.pem": "set COSIGN_KEY to a file that exists",
	} {
		if _, err := cosign.Load(reference, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Load(%q): want %q, got %v", reference, want, err)
		}
	}
}

func TestSignImage(t *testing.T) {
	log := newLog(t)
	key, stranger := newKey(t), newKey(t)
	digest := v1.Hash{Algorithm: "sha256", Hex: strings.Repeat("ab", 32)}
	changed := v1.Hash{Algorithm: "sha256", Hex: strings.Repeat("ab", 31) + "ac"}

	signed, err := key.SignImage(t.Context(), log, repository, digest, nil)
	if err != nil {
		t.Fatal(err)
	}
	both, err := stranger.SignImage(t.Context(), log, repository, digest, signed)
	if err != nil {
		t.Fatal(err)
	}
	again, err := key.SignImage(t.Context(), log, repository, digest, nil)
	if err != nil {
		t.Fatalf("the log has the entry of an earlier run: %v", err)
	}
	if diff := cmp.Diff(manifest(t, signed), manifest(t, again)); diff != "" {
		t.Errorf("the same key signs the same content twice: -first, +second:\n%s", diff)
	}

	cases := map[string]struct {
		reason     string
		signatures v1.Image
		digest     v1.Hash
		public     []byte
		want       string
	}{
		"Valid":       {reason: "what was signed verifies", signatures: signed, digest: digest, public: key.Public()},
		"Second":      {reason: "an image may have signatures of others, too", signatures: both, digest: digest, public: key.Public()},
		"Stranger":    {reason: "each of them counts for its own key", signatures: both, digest: digest, public: stranger.Public()},
		"OtherKey":    {reason: "another key does not", signatures: signed, digest: digest, public: stranger.Public(), want: "was not made with this key"},
		"OtherImage":  {reason: "a changed image has another digest", signatures: signed, digest: changed, public: key.Public(), want: "the signature belongs to " + digest.String()},
		"OneByte":     {reason: "what is signed cannot be changed", signatures: flip(t, signed, true), digest: digest, public: key.Public(), want: "not of this content"},
		"NotRecorded": {reason: "Crossplane wants a log's entry", signatures: flip(t, signed, false), digest: digest, public: key.Public(), want: "no transparency log"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := cosign.VerifyImage(tc.signatures, tc.digest, tc.public)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%s: want %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}

// TestLogThatLies expects that no proof is kept that Crossplane would refuse later.
func TestLogThatLies(t *testing.T) {
	honest, other := newServer(t), newServer(t)
	key := newKey(t)
	digest := v1.Hash{Algorithm: "sha256", Hex: strings.Repeat("ab", 32)}
	cases := map[string]struct {
		reason  string
		handler http.HandlerFunc
		want    string
	}{
		"OtherKey": {
			reason: "an entry has to be signed with the key that the log shows",
			handler: func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "/publicKey") {
					other.Config.Handler.ServeHTTP(w, r)
					return
				}
				honest.Config.Handler.ServeHTTP(w, r)
			},
			want: "its entry belongs to another log",
		},
		"Refused": {
			reason: "the log's own words reach the user",
			handler: func(w http.ResponseWriter, _ *http.Request) {
				http.Error(w, "the log is frozen", http.StatusServiceUnavailable)
			},
			want: "Service Unavailable: the log is frozen",
		},
		"Nonsense": {
			reason: "an answer that is none is an error",
			handler: func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusCreated)
				_, _ = w.Write([]byte("{}"))
			},
			want: "its answer has no entry",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(tc.handler)
			t.Cleanup(server.Close)
			_, err := key.SignImage(t.Context(), &cosign.Log{URL: server.URL}, repository, digest, nil)
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "check REKOR_URL") {
				t.Errorf("%s: want %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
	t.Run("Away", func(t *testing.T) {
		server := newServer(t)
		server.Close()
		_, err := key.SignImage(t.Context(), &cosign.Log{URL: server.URL}, repository, digest, nil)
		if err == nil || !strings.Contains(err.Error(), "check REKOR_URL and the network") {
			t.Errorf("want the remedy, got %v", err)
		}
	})
}

// flip changes one byte of what is signed, or takes the log's proof away.
func flip(t *testing.T, signatures v1.Image, content bool) v1.Image {
	t.Helper()
	layers, err := signatures.Layers()
	if err != nil {
		t.Fatal(err)
	}
	old := manifest(t, signatures)
	reader, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	message, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	annotations := old.Layers[0].Annotations
	if content {
		message[len(message)-2] ^= 1
	} else {
		delete(annotations, "dev.sigstore.cosign/bundle")
	}
	bare, err := mutate.Append(empty.Image, mutate.Addendum{
		Layer: static.NewLayer(message, old.Layers[0].MediaType), Annotations: annotations,
	})
	if err != nil {
		t.Fatal(err)
	}
	return bare
}

func manifest(t *testing.T, img v1.Image) *v1.Manifest {
	t.Helper()
	m, err := img.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	return m.DeepCopy()
}

func newPrivate(t *testing.T, curve elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	private, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return private
}

func newKey(t *testing.T) *cosign.Key {
	t.Helper()
	key, err := cosign.NewKey(newPrivate(t, elliptic.P256()))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newServer(t *testing.T) *httptest.Server {
	t.Helper()
	log, err := logtest.New()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(log)
	t.Cleanup(server.Close)
	return server
}

func newLog(t *testing.T) *cosign.Log {
	t.Helper()
	return &cosign.Log{URL: newServer(t).URL}
}
