// SPDX-License-Identifier: Apache-2.0

//go:build integration

package provider

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/providerconfig"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/test/outside"
)

// TestRotation changes the provider's credentials while it runs.
func TestRotation(t *testing.T) {
	t.Parallel()

	b := newBench(t)
	s := b.outside()
	s.s3.AddUser("rotated", "rotated-secret-key")
	b.start("--poll-interval=2s")

	first := bucket("shop", "before")
	b.apply(first)
	b.becomeReady(time.Minute, first)

	secret := &corev1.Secret{ObjectMeta: meta(system, "s3")}
	b.get(secret)

	change := func(id, key string) {
		t.Helper()

		secret.Data[v1alpha1.KeyAccessKeyID], secret.Data[v1alpha1.KeySecretAccessKey] = []byte(id), []byte(key)
		if err := b.Update(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
	}

	change("nobody", "nothing")
	b.connected(30*time.Second, first, v1alpha1.ReasonCredentialsRefused)

	change("rotated", "rotated-secret-key")

	began := time.Now()
	second := bucket("shop", "after")
	b.apply(second)
	b.becomeReady(30*time.Second, second)
	t.Logf("The new key was in use %s after the Secret changed", time.Since(began).Round(time.Millisecond))
}

// TestConfigInUse shows that a config of either kind stays while a resource uses it, and reports whether its service
// responds.
func TestConfigInUse(t *testing.T) {
	t.Parallel()

	b := newBench(t)
	s := b.outside()
	b.start("--allow-tenant-cidr=127.0.0.0/8")

	own := &v1alpha1.ProviderConfig{
		ObjectMeta: meta("shop", "s3"),
		Spec: v1alpha1.ProviderConfigSpec{S3: &v1alpha1.S3Config{
			Endpoint:    s.toS3.URL,
			CABundle:    string(s.toS3.CA),
			Credentials: v1alpha1.S3Credentials{SecretRef: v1alpha1.SecretReference{Name: "own"}},
		}},
	}
	shared := &v1alpha1.ClusterProviderConfig{ObjectMeta: meta("", "s3")}
	mine, ours := bucket("shop", "mine"), bucket("shop", "ours")
	mine.Spec.ProviderConfigReference = &xpv2.ProviderConfigReference{Kind: "ProviderConfig", Name: "s3"}

	b.apply(own, mine, ours)

	c := b.connected(30*time.Second, own, v1alpha1.ReasonCredentialsMissing)
	if !strings.Contains(c.Message, `"own"`) || !strings.Contains(c.Message, `"shop"`) {
		t.Errorf("The missing Secret should be named with its place, got %q", c.Message)
	}

	b.apply(&corev1.Secret{
		ObjectMeta: meta("shop", "own"),
		StringData: map[string]string{v1alpha1.KeyAccessKeyID: s.s3.AccessKey, v1alpha1.KeySecretAccessKey: s.s3.SecretKey},
	})
	b.connected(time.Minute, own, v1alpha1.ReasonAnswered)
	b.connected(time.Minute, shared, v1alpha1.ReasonAnswered)
	b.becomeReady(time.Minute, mine, ours)

	for _, pc := range []client.Object{own, shared} {
		if err := b.Delete(t.Context(), pc); err != nil {
			t.Fatal(err)
		}
	}

	for _, pc := range []resource.ProviderConfig{own, shared} {
		b.eventually(30*time.Second, "telling that the config is in use", func() string {
			b.get(pc)

			if got := pc.GetCondition(providerconfig.TypeTerminating); got.Reason != providerconfig.ReasonInUse {
				return string(got.Reason)
			}

			return ""
		})
	}

	// The resources still work, and are deleted.
	for _, mg := range []client.Object{mine, ours} {
		if err := b.Delete(t.Context(), mg); err != nil {
			t.Fatal(err)
		}
	}

	b.eventually(30*time.Second, "the buckets going", func() string {
		if n := buckets(t, s); n != 0 {
			return "one is still there"
		}

		return ""
	})
	for _, mg := range []client.Object{mine, ours} {
		b.eventually(30*time.Second, "the resources going", func() string {
			if err := b.Get(t.Context(), client.ObjectKeyFromObject(mg), mg); !kerrors.IsNotFound(err) {
				return "one is still there"
			}

			return ""
		})
	}

	// The garbage collector, which does not run here, deletes usages with their resources.
	usages := &v1alpha1.ProviderConfigUsageList{}
	if err := b.List(t.Context(), usages); err != nil {
		t.Fatal(err)
	}

	for i := range usages.Items {
		if err := b.Delete(t.Context(), &usages.Items[i]); err != nil {
			t.Fatal(err)
		}
	}

	for _, pc := range []client.Object{own, shared} {
		// A reconcile that still finds a usage in its cache comes again after half a minute.
		b.eventually(2*time.Minute, "the config going", func() string {
			if err := b.Get(t.Context(), client.ObjectKeyFromObject(pc), pc); !kerrors.IsNotFound(err) {
				return "it is still there"
			}

			return ""
		})
	}
}

// TestWithdrawnKey removes the workload's key from a config. Clients of the bucket lose it, and nothing else.
func TestWithdrawnKey(t *testing.T) {
	t.Parallel()

	b := newBench(t)
	s := b.outside()
	b.start("--allow-tenant-cidr=127.0.0.0/8", "--poll-interval=2s")

	key := func(name, id, secret string) {
		b.apply(&corev1.Secret{ObjectMeta: meta("shop", name), StringData: map[string]string{
			v1alpha1.KeyAccessKeyID: id, v1alpha1.KeySecretAccessKey: secret,
		}})
	}
	key("own", s.s3.AccessKey, s.s3.SecretKey)
	key("workload", "workload-id", "workload-key")

	pc := &v1alpha1.ProviderConfig{
		ObjectMeta: meta("shop", "own"),
		Spec: v1alpha1.ProviderConfigSpec{S3: &v1alpha1.S3Config{
			Endpoint:            s.toS3.URL,
			CABundle:            string(s.toS3.CA),
			Credentials:         v1alpha1.S3Credentials{SecretRef: v1alpha1.SecretReference{Name: "own"}},
			WorkloadCredentials: &v1alpha1.S3Credentials{SecretRef: v1alpha1.SecretReference{Name: "workload"}},
		}},
	}
	mg := bucket("shop", "assets")
	mg.Spec.ProviderConfigReference = reference("own")
	mg.Spec.WriteConnectionSecretToReference = connection("assets-s3")
	b.apply(pc, mg)
	b.becomeReady(time.Minute, mg)

	keys := func() string {
		handed := &corev1.Secret{ObjectMeta: meta("shop", "assets-s3")}
		b.get(handed)

		return strings.Join(slices.Sorted(maps.Keys(handed.Data)), " ")
	}

	b.eventually(30*time.Second, "the workload's key being handed on", func() string {
		if got := keys(); got != "accessKeyId bucket ca.crt endpoint region secretAccessKey" {
			return got
		}

		return ""
	})

	// The provider writes its status in the meantime.
	b.eventually(30*time.Second, "the config being changed", func() string {
		b.get(pc)
		pc.Spec.S3.WorkloadCredentials = nil

		if err := b.Update(t.Context(), pc); err != nil {
			return err.Error()
		}

		return ""
	})
	b.eventually(30*time.Second, "the workload's key being withdrawn", func() string {
		if got := keys(); got != "bucket ca.crt endpoint region" {
			return got
		}

		return ""
	})

	before := b.writes()

	time.Sleep(6 * time.Second)

	if d := more(before, b.writes()); len(d) != 0 {
		t.Errorf("What is withdrawn is withdrawn once, got %v", d)
	}
}

// TestRetry shows that a config defines the delays after failures of its service.
func TestRetry(t *testing.T) {
	t.Parallel()

	b := newBench(t)
	s := b.outside()
	s.toS3.Fail(func(*http.Request) bool { return true }, outside.Answer(http.StatusInternalServerError, ""))
	b.start("--allow-tenant-cidr=127.0.0.0/8")
	b.apply(&corev1.Secret{ObjectMeta: meta("shop", "own"), StringData: map[string]string{
		v1alpha1.KeyAccessKeyID: s.s3.AccessKey, v1alpha1.KeySecretAccessKey: s.s3.SecretKey,
	}})

	for name, retry := range map[string]*v1alpha1.Retry{
		"eager":   nil,
		"patient": {BaseDelay: &metav1.Duration{Duration: time.Minute}, MaxDelay: &metav1.Duration{Duration: time.Hour}},
	} {
		mg := bucket("shop", name)
		mg.Spec.ProviderConfigReference = reference(name)
		b.apply(&v1alpha1.ProviderConfig{
			ObjectMeta: meta("shop", name),
			Spec: v1alpha1.ProviderConfigSpec{
				S3: &v1alpha1.S3Config{
					Endpoint:    s.toS3.URL,
					CABundle:    string(s.toS3.CA),
					Credentials: v1alpha1.S3Credentials{SecretRef: v1alpha1.SecretReference{Name: "own"}},
				},
				Retry: retry,
			},
		}, mg)
		b.connected(30*time.Second, mg, v1alpha1.ReasonServerError)
	}

	// The events of the failure have been processed.
	time.Sleep(5 * time.Second)
	s.toS3.Reset()
	time.Sleep(20 * time.Second)

	asked := map[string]int{}

	for _, r := range s.toS3.Requests() {
		for _, name := range []string{"eager", "patient"} {
			if strings.HasPrefix(r, "HEAD /"+name) {
				asked[name]++
			}
		}
	}

	if asked["eager"] < 1 || asked["patient"] != 0 {
		t.Errorf("in 20 seconds the eager one should ask again and the patient one not, got %v", asked)
	}
}
