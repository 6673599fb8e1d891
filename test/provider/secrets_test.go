// SPDX-License-Identifier: Apache-2.0

//go:build integration

package provider

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	credentialsv1alpha1 "github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
	registryv1alpha1 "github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	storagev1alpha1 "github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/test/outside"
)

// TestNoSecretLeaks puts a marker into every credential path, causes successes and failures at debug level, and
// searches everything except Secrets for the markers.
func TestNoSecretLeaks(t *testing.T) {
	t.Parallel()

	b := newBench(t)
	s := b.outside()

	metrics := free(t)
	p := b.start("--debug", "--allow-tenant-cidr=127.0.0.0/8", "--metrics-address="+metrics, "--poll-interval=1s")

	const canary = "canary-tWeEt"

	secret := func(name string, data map[string]string) client.Object {
		return &corev1.Secret{ObjectMeta: meta("shop", name), StringData: data}
	}
	ref := func(name string) v1alpha1.SecretReference { return v1alpha1.SecretReference{Name: name} }

	workload := v1alpha1.S3Credentials{SecretRef: ref("workload")}
	configs := []client.Object{
		// Valid keys, with others for workloads.
		&v1alpha1.ProviderConfig{ObjectMeta: meta("shop", "works"), Spec: v1alpha1.ProviderConfigSpec{S3: &v1alpha1.S3Config{
			Endpoint: s.toS3.URL, CABundle: string(s.toS3.CA),
			Credentials: v1alpha1.S3Credentials{SecretRef: ref("works")}, WorkloadCredentials: &workload,
		}}},
		// Invalid credentials of every form.
		&v1alpha1.ProviderConfig{ObjectMeta: meta("shop", "wrong"), Spec: v1alpha1.ProviderConfigSpec{S3: &v1alpha1.S3Config{
			Endpoint: s.toS3.URL, CABundle: string(s.toS3.CA), Credentials: v1alpha1.S3Credentials{SecretRef: ref("wrong")},
		}}},
		&v1alpha1.ProviderConfig{ObjectMeta: meta("shop", "basic"), Spec: v1alpha1.ProviderConfigSpec{MLflow: &v1alpha1.MLflowConfig{
			URL: s.toMLflow.URL, CABundle: string(s.toMLflow.CA),
			Credentials: &v1alpha1.HTTPCredentials{Basic: &v1alpha1.BasicCredentials{SecretRef: ref("basic")}},
		}}},
		&v1alpha1.ProviderConfig{ObjectMeta: meta("shop", "bearer"), Spec: v1alpha1.ProviderConfigSpec{MLflow: &v1alpha1.MLflowConfig{
			URL: s.toMLflow.URL, CABundle: string(s.toMLflow.CA),
			Credentials: &v1alpha1.HTTPCredentials{Bearer: &v1alpha1.BearerCredentials{SecretRef: ref("bearer")}},
		}}},
	}

	prometheus := &v1alpha1.ProviderConfig{ObjectMeta: meta("shop", "prometheus"), Spec: v1alpha1.ProviderConfigSpec{
		Prometheus: &v1alpha1.PrometheusConfig{
			URL: s.toMLflow.URL, CABundle: string(s.toMLflow.CA),
			Credentials: &v1alpha1.HTTPCredentials{Bearer: &v1alpha1.BearerCredentials{SecretRef: ref("bearer")}},
		},
	}}
	configs = append(configs, prometheus)

	s.s3.AddUser(canary+"-id", canary+"-key")
	b.apply(
		secret("works", map[string]string{v1alpha1.KeyAccessKeyID: canary + "-id", v1alpha1.KeySecretAccessKey: canary + "-key"}),
		secret("workload", map[string]string{v1alpha1.KeyAccessKeyID: canary + "-wid", v1alpha1.KeySecretAccessKey: canary + "-wkey"}),
		secret("wrong", map[string]string{
			v1alpha1.KeyAccessKeyID: canary, v1alpha1.KeySecretAccessKey: canary, v1alpha1.KeySessionToken: canary,
		}),
		secret("basic", map[string]string{v1alpha1.KeyUsername: canary, v1alpha1.KeyPassword: canary}),
		secret("bearer", map[string]string{v1alpha1.KeyToken: canary}),
	)
	b.apply(configs...)

	works, wrong := bucket("shop", "works"), bucket("shop", "wrong")
	works.Spec.ProviderConfigReference = reference("works")
	works.Spec.WriteConnectionSecretToReference = connection("works-s3")
	wrong.Spec.ProviderConfigReference = reference("wrong")

	basic, bearer := model("shop", "basic"), model("shop", "bearer")
	basic.Spec.ProviderConfigReference = reference("basic")
	bearer.Spec.ProviderConfigReference = reference("bearer")

	generated := &credentialsv1alpha1.Credential{ObjectMeta: meta("shop", "generated")}

	// A server that echoes the request is a typical leak.
	s.toS3.Fail(outside.Call("HEAD /wrong"), outside.Answer(http.StatusBadRequest, ""))
	b.apply(works, wrong, basic, bearer, generated)
	b.becomeReady(time.Minute, works, generated)
	b.connected(time.Minute, basic, v1alpha1.ReasonCredentialsRefused)
	b.connected(time.Minute, bearer, v1alpha1.ReasonCredentialsRefused)
	b.eventually(time.Minute, "telling that this is no Prometheus", func() string {
		b.get(prometheus)

		return map[bool]string{true: "not yet"}[prometheus.GetCondition(v1alpha1.TypeConnected).Status != corev1.ConditionFalse]
	})
	b.eventually(time.Minute, "the wrong key being told", func() string {
		b.get(wrong)

		return map[bool]string{true: "not yet"}[wrong.GetCondition(v1alpha1.TypeConnected).Status != corev1.ConditionFalse]
	})
	s.toMLflow.Fail(func(*http.Request) bool { return true }, outside.Answer(http.StatusInternalServerError, "you sent "+canary))
	s.toS3.Fail(func(*http.Request) bool { return true }, outside.Answer(http.StatusInternalServerError, "<Error><Message>"+canary+"</Message></Error>"))
	b.connected(time.Minute, basic, v1alpha1.ReasonServerError)
	b.connected(time.Minute, works, v1alpha1.ReasonServerError)

	handed := &corev1.Secret{ObjectMeta: meta("shop", "works-s3")}
	b.get(handed)

	if got := string(handed.Data[storagev1alpha1.KeySecretAccessKey]); got != canary+"-wkey" {
		t.Errorf("The connection Secret should have the workload's key and never the provider's, got %q", got)
	}

	password := &corev1.Secret{ObjectMeta: meta("shop", "generated")}
	b.get(password)

	// Objects are counted every 15 seconds.
	b.eventually(30*time.Second, "the objects being counted", func() string {
		if strings.Contains(scrape(t, "http://"+metrics+"/metrics"), "\ncrossplane_managed_resource_exists{") {
			return ""
		}

		return "not yet"
	})

	sinks := map[string]string{"log": p.log.String(), "metrics": scrape(t, "http://"+metrics+"/metrics")}

	for _, l := range []client.ObjectList{
		&corev1.EventList{},
		&v1alpha1.ProviderConfigList{}, &v1alpha1.ClusterProviderConfigList{}, &v1alpha1.ProviderConfigUsageList{},
		&storagev1alpha1.BucketList{}, &registryv1alpha1.RegisteredModelList{}, &credentialsv1alpha1.CredentialList{},
	} {
		if err := b.List(t.Context(), l); err != nil {
			t.Fatal(err)
		}

		data, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}

		sinks[strings.TrimPrefix(strings.TrimSuffix(typeName(l), "List"), "*")] = string(data)
	}

	// Dashboards for upjet providers look for these.
	for _, name := range []string{
		"upjet_resource_external_api_calls_total", "upjet_resource_ext_api_duration_bucket", "upjet_resource_ttr_bucket",
		"upjet_resource_reconcile_delay_seconds_bucket", "crossplane_managed_resource_exists", "capstan_outside_request_duration_seconds_bucket",
	} {
		if !strings.Contains(sinks["metrics"], "\n"+name+"{") {
			t.Errorf("metric %s is missing", name)
		}
	}

	for _, where := range []string{"log", "metrics", "v1.Event", "v1alpha1.Bucket"} {
		if len(sinks[where]) < 100 {
			t.Errorf("Nothing was told in %s, so nothing is proved: %q", where, sinks[where])
		}
	}

	for _, secret := range []string{canary, s.s3.SecretKey, s.mlflow.Password, string(password.Data[credentialsv1alpha1.KeyPassword])} {
		for form, value := range forms(secret) {
			for where, told := range sinks {
				if strings.Contains(told, value) {
					t.Errorf("A secret is in %s, %s: %s", where, form, around(told, value))
				}
			}
		}
	}
}

// forms in which a secret can appear.
func forms(s string) map[string]string {
	quoted, err := json.Marshal(s)
	if err != nil {
		panic(err) // not of a string
	}

	all := map[string]string{
		"as it is":   s,
		"as JSON":    strings.Trim(string(quoted), `"`),
		"in a query": url.QueryEscape(s),
	}

	// Base64 has three forms, by the position where a text begins.
	for skip := range 3 {
		if len(s) > skip+6 {
			cut := s[skip:]
			all["in base64"+strings.Repeat("'", skip)] = base64.StdEncoding.EncodeToString([]byte(cut[:len(cut)-len(cut)%3]))
		}
	}

	return all
}

func around(told, value string) string {
	i := strings.Index(told, value)

	return told[max(0, i-80):min(len(told), i+80)]
}

func scrape(t *testing.T, url string) string {
	t.Helper()

	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()

	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}

	return string(data)
}

// free address for a server.
func free(t *testing.T) string {
	t.Helper()

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()

	return l.Addr().String()
}
