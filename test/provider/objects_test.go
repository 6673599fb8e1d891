// SPDX-License-Identifier: Apache-2.0

//go:build integration

package provider

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	registryv1alpha1 "github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	storagev1alpha1 "github.com/capstan-dev/capstan/apis/storage/v1alpha1"
)

func meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func bucket(namespace, name string) *storagev1alpha1.Bucket {
	return &storagev1alpha1.Bucket{ObjectMeta: meta(namespace, name)}
}

func model(namespace, name string) *registryv1alpha1.RegisteredModel {
	return &registryv1alpha1.RegisteredModel{ObjectMeta: meta(namespace, name)}
}

func version(namespace, name, model string) *registryv1alpha1.ModelVersion {
	source := "s3://models/" + name

	return &registryv1alpha1.ModelVersion{
		ObjectMeta: meta(namespace, name),
		Spec:       registryv1alpha1.ModelVersionSpec{ForProvider: registryv1alpha1.ModelVersionParameters{Model: model, Source: &source}},
	}
}

func alias(namespace, name, model, alias, version string) *registryv1alpha1.ModelAlias {
	return &registryv1alpha1.ModelAlias{
		ObjectMeta: meta(namespace, name),
		Spec: registryv1alpha1.ModelAliasSpec{ForProvider: registryv1alpha1.ModelAliasParameters{
			Model: model, Alias: alias, Version: version,
		}},
	}
}

// analysis of the metrics of an Algorithm, every ten seconds.
func analysis(namespace, name, algorithm string) *observev1alpha1.Analysis {
	a := &observev1alpha1.Analysis{ObjectMeta: meta(namespace, name)}
	most := 1e6
	a.Spec.ForProvider.Algorithm = algorithm
	a.Spec.ForProvider.Metrics = &observev1alpha1.MetricsParameters{
		Interval: &metav1.Duration{Duration: 10 * time.Second},
		Window:   &metav1.Duration{Duration: 20 * time.Second},
		Slots:    []string{"a"},
		Checks: []observev1alpha1.Check{
			{Name: "value", Kind: observev1alpha1.CheckQuery, Query: "queue_length", Max: &most},
			{Name: "rate", Kind: observev1alpha1.CheckRequestRate},
		},
	}

	return a
}

// reference to a ProviderConfig.
func reference(name string) *xpv2.ProviderConfigReference {
	return &xpv2.ProviderConfigReference{Kind: "ProviderConfig", Name: name}
}

func connection(name string) *xpv2.LocalSecretReference {
	return &xpv2.LocalSecretReference{Name: name}
}

func typeName(o any) string { return fmt.Sprintf("%T", o) }

// lineage of a run that goes on.
func lineage(namespace, name string) *observev1alpha1.Lineage {
	l := &observev1alpha1.Lineage{ObjectMeta: meta(namespace, name)}
	l.Spec.ForProvider = observev1alpha1.LineageParameters{
		Job:  "daily",
		Runs: []observev1alpha1.LineageRun{{Name: "daily-1", StartedAt: metav1.NewTime(time.Unix(0, 0)), State: observev1alpha1.LineageRunning}},
	}

	return l
}
