// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	storagev1alpha1 "github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// modelFile is the file that the demo server loads from a model.
const modelFile = "model.bin"

// A weights is a model: the content of its files, by name.
type weights map[string]string

// weightsOf a version: a file that the server loads, and one beside it.
func weightsOf(version string) weights {
	return weights{modelFile: "weights of " + version, "config/config.json": `{"version": "` + version + `"}`}
}

// digest of the model, computed like in docs/model.md.
func (w weights) digest() string {
	var lines strings.Builder
	for _, name := range slices.Sorted(maps.Keys(w)) {
		fmt.Fprintf(&lines, "%x  %s\n", sha256.Sum256([]byte(w[name])), name)
	}

	return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(lines.String())))
}

// size of its files in total.
func (w weights) size() (n int64) {
	for content := range maps.Values(w) {
		n += int64(len(content))
	}

	return n
}

// loaded is the response of the demo server when it has loaded the model.
func (w weights) loaded() string {
	return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(w[modelFile])))
}

// serves fails until an Algorithm responds, through the Gateway, with this model.
func (w weights) serves(host string) func(context.Context) error {
	return func(ctx context.Context) error {
		got, err := servedModel(ctx, host)
		if err == nil && got != w.loaded() {
			err = fmt.Errorf("the model with digest %q is served, want %q", got, w.loaded())
		}

		return err
	}
}

// servedModel is the digest of the file that an Algorithm has loaded.
func servedModel(ctx context.Context, host string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, gateway+"/predict", nil)
	if err != nil {
		return "", err
	}
	req.Host = host
	rsp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = rsp.Body.Close() }()
	if rsp.StatusCode != http.StatusOK {
		return "", errors.New(rsp.Status)
	}
	var answer struct {
		ModelDigest string `json:"modelDigest"`
	}

	return answer.ModelDigest, json.NewDecoder(rsp.Body).Decode(&answer)
}

// hostOf an Algorithm.
func hostOf(ns, name string) string { return name + "." + ns + ".example.org" }

// serving is an Algorithm whose server loads a model.
func serving(ns, name string, m v1alpha1.Model, modify ...func(*v1alpha1.Algorithm)) *v1alpha1.Algorithm {
	return algorithm(ns, name, append([]func(*v1alpha1.Algorithm){draining(drainSeconds), routed(hostOf(ns, name)), func(a *v1alpha1.Algorithm) {
		a.Spec.Model = &m
		a.Spec.Args = []string{"--model-file=/models/" + modelFile}
	}}, modify...)...)
}

// outsideSecret is the Secret of an outside server.
func outsideSecret(t *testing.T, name string) map[string][]byte {
	t.Helper()
	s, err := get(t.Context(), &corev1.Secret{}, outsideNamespace, name)
	if err != nil {
		t.Fatal(err)
	}

	return s.Data
}

// outsideAuthority has signed the certificates of the outside servers, PEM.
func outsideAuthority(t *testing.T) string {
	t.Helper()
	c, err := get(t.Context(), &corev1.ConfigMap{}, outsideNamespace, "ca")
	if err != nil {
		t.Fatal(err)
	}

	return c.Data["ca.crt"]
}

// outsideClient connects to the outside servers.
func outsideClient(t *testing.T) *http.Client {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(outsideAuthority(t)))

	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}, Timeout: 30 * time.Second}
}

// secret of a namespace.
func secret(t *testing.T, ns, name string, data map[string][]byte) {
	t.Helper()
	if err := apply(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Data: data}); err != nil {
		t.Fatal(err)
	}
}

// A shelf is a bucket for models, with the connection Secret of the same name.
type shelf struct {
	bucket string
	s3     *s3.Client
}

// newShelf creates a Bucket, like a team with its own account of the S3 server.
func newShelf(t *testing.T, ns, name string) shelf {
	t.Helper()
	key := outsideSecret(t, "s3")
	secret(t, ns, "s3-account", map[string][]byte{
		v1alpha1.KeyAccessKeyID: key[v1alpha1.KeyAccessKeyID], v1alpha1.KeySecretAccessKey: key[v1alpha1.KeySecretAccessKey],
	})
	account := v1alpha1.S3Credentials{SecretRef: v1alpha1.SecretReference{Name: "s3-account"}}
	// A config of the platform: a namespace's own must not lead to Services of other namespaces.
	pc := &v1alpha1.ClusterProviderConfig{
		ObjectMeta: metav1.ObjectMeta{Name: "s3-" + ns},
		Spec: v1alpha1.ClusterProviderConfigSpec{
			S3: &v1alpha1.SharedS3Config{
				S3Config: v1alpha1.S3Config{
					Endpoint: "https://s3.outside.svc", CABundle: outsideAuthority(t), Credentials: account, WorkloadCredentials: &account,
				},
				BucketPrefix: new(""),
			},
			SecretsNamespace: ns, AllowedNamespaces: []string{ns},
		},
	}
	// All users of the server share one set of names.
	bucket := &storagev1alpha1.Bucket{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: ns + "-" + name},
		Spec: storagev1alpha1.BucketSpec{
			ForProvider:                      storagev1alpha1.BucketParameters{ForceDestroy: true},
			WriteConnectionSecretToReference: &xpv2.LocalSecretReference{Name: name},
		},
	}
	bucket.Spec.ProviderConfigReference = &xpv2.ProviderConfigReference{Kind: "ClusterProviderConfig", Name: pc.Name}
	for _, o := range []client.Object{pc, bucket} {
		if err := apply(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the Bucket is Ready", well(bucket))
	t.Cleanup(func() {
		// Before the namespace, which has the account.
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		_ = kube.DeleteAllOf(ctx, &v1alpha1.Algorithm{}, client.InNamespace(ns))
		for kube.Delete(ctx, bucket) == nil {
			time.Sleep(200 * time.Millisecond)
		}
		_ = kube.Delete(ctx, pc)
	})

	return shelf{bucket: bucket.Name, s3: s3.New(s3.Options{
		BaseEndpoint: aws.String("https://s3.outside.svc"), Region: "us-east-1", UsePathStyle: true, HTTPClient: outsideClient(t),
		Credentials: credentials.NewStaticCredentialsProvider(string(key[v1alpha1.KeyAccessKeyID]), string(key[v1alpha1.KeySecretAccessKey]), ""),
	})}
}

// put a model into the bucket, and return its URI.
func (s shelf) put(t *testing.T, prefix string, w weights) string {
	t.Helper()
	for name, content := range w {
		if _, err := s.s3.PutObject(t.Context(), &s3.PutObjectInput{
			Bucket: &s.bucket, Key: aws.String(prefix + "/" + name), Body: strings.NewReader(content),
		}); err != nil {
			t.Fatal(err)
		}
	}

	return "s3://" + s.bucket + "/" + prefix
}

// fetched returns the logs of the containers that download the model, by pod.
func fetched(t *testing.T, ns, name string) map[string][]string {
	t.Helper()
	list := &corev1.PodList{}
	if err := kube.List(t.Context(), list, client.InNamespace(ns), client.MatchingLabels{"capstan.dev/algorithm": name}); err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for _, p := range list.Items {
		stream, err := clients.CoreV1().Pods(ns).GetLogs(p.Name, &corev1.PodLogOptions{Container: "model"}).Stream(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for lines := bufio.NewScanner(stream); lines.Scan(); {
			var line struct {
				Msg string `json:"msg"`
			}
			if json.Unmarshal(lines.Bytes(), &line) == nil {
				out[p.Name] = append(out[p.Name], line.Msg)
			}
		}
		_ = stream.Close()
	}

	return out
}

// TestModelFromS3 serves a model of a Bucket. Then every kind of problem blocks the next model, which is served in the
// end.
func TestModelFromS3(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	host := hostOf(ns, "reco")
	s := newShelf(t, ns, "models")
	v1, v2 := weightsOf("v1"), weightsOf("v2")
	first, second := s.put(t, "reco/1", v1), s.put(t, "reco/2", v2)
	secret(t, ns, "wrong", map[string][]byte{
		"endpoint": []byte("https://s3.outside.svc"), "ca.crt": []byte(outsideAuthority(t)),
		"accessKeyId": []byte("nobody"), "secretAccessKey": []byte("nothing"),
	})
	from := func(uri string, modify ...func(*v1alpha1.Model)) v1alpha1.Model {
		m := v1alpha1.Model{
			URI: uri, Credentials: "models",
			Cache: &v1alpha1.ModelCache{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources:   v1alpha1.ModelCacheResources{Requests: v1alpha1.ModelCacheRequests{Storage: new(resource.MustParse("64Mi"))}},
			},
		}
		for _, mod := range modify {
			mod(&m)
		}

		return m
	}
	digest := func(d string) func(*v1alpha1.Model) { return func(m *v1alpha1.Model) { m.Digest = d } }

	began := time.Now()
	create(t, serving(ns, "reco", from(first, digest(v1.digest()))))
	eventually(t, "v1 is served", v1.serves(host))
	t.Logf("a model from S3 is served %s after the Algorithm was made, its cache with it", time.Since(began).Round(100*time.Millisecond))
	w := witnessOf(t, ns, "reco")
	c := callers(t, ns, "reco", host, outsideNew)

	// A second replica uses the model in the cache.
	began = time.Now()
	create(t, serving(ns, "reco", from(first, digest(v1.digest())), sized(2)))
	t.Logf("a second replica is ready after %s", time.Since(began).Round(100*time.Millisecond))
	downloads := 0
	for pod, said := range fetched(t, ns, "reco") {
		if slices.Contains(said, "fetching") {
			downloads++
		} else if !slices.Contains(said, "the model is there") {
			t.Errorf("pod %s neither downloaded the model nor found it: %q", pod, said)
		}
	}
	if downloads != 1 {
		t.Errorf("two replicas with a cache downloaded the model %d times, want once", downloads)
	}

	for _, tc := range []struct {
		// name of the Algorithm: the ready one, or a separate one.
		name   string
		what   string
		model  v1alpha1.Model
		reason xpv2.ConditionReason
		words  []string
	}{
		{
			"reco", "another digest", from(second, digest(v1.digest())), v1alpha1.ReasonModelDigestMismatch,
			[]string{v1.digest(), v2.digest(), "spec.model.digest"},
		},
		{
			"size", "another size", from(second, digest(fmt.Sprintf("%s/%d", v2.digest(), v2.size()+1))), v1alpha1.ReasonModelSizeMismatch,
			[]string{strconv.FormatInt(v2.size(), 10), strconv.FormatInt(v2.size()+1, 10), "spec.model.digest"},
		},
		{
			"missing", "no such model", from("s3://" + s.bucket + "/reco/3"), v1alpha1.ReasonModelNotFound,
			[]string{s.bucket, `"reco/3"`},
		},
		{
			"reco", "a key that nobody knows", from(second, func(m *v1alpha1.Model) { m.Credentials = "wrong" }), v1alpha1.ReasonModelForbidden,
			[]string{"spec.model.credentials"},
		},
	} {
		began := time.Now()
		edit(t, serving(ns, tc.name, tc.model, sized(2)))
		eventually(t, tc.what+" is reported", algorithmCondition(ns, tc.name, v1alpha1.TypeUpdated, corev1.ConditionFalse, tc.reason, tc.words...))
		t.Logf("%s: reported %s after the edit", tc.what, time.Since(began).Round(100*time.Millisecond))
		if err := v1.serves(host)(t.Context()); err != nil {
			t.Errorf("%s: %v", tc.what, err)
		}
		eventually(t, "still Ready", algorithmCondition(ns, "reco", xpv2.TypeReady, corev1.ConditionTrue, xpv2.ReasonAvailable))
	}

	edit(t, serving(ns, "reco", from(second, digest(fmt.Sprintf("%s/%d", v2.digest(), v2.size()))), sized(2)))
	within(t, 2*timeout, "v2 is served", v2.serves(host))
	within(t, 2*timeout, "v1 is gone", alone(ns, "reco"))
	c.end(t)
	for _, stop := range w.stop {
		stop()
	}
	if _, n := w.switched(); n != 1 || w.fewest < 1 || len(w.broken) > 0 {
		t.Errorf("callers were sent to another slot %d times, want once; at least %d endpoints were ready; turned False: %q", n, w.fewest, w.broken)
	}
}
