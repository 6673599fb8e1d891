// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	_ "embed"
)

//go:embed algorithm.yaml
var algorithm []byte

//go:embed database.yaml
var database []byte

//go:embed bucket.yaml
var bucket []byte

//go:embed credential.yaml
var credential []byte

// A kind of objects that tenants have.
type kind struct {
	// title of many, as reports call them.
	title string
	at    schema.GroupVersionResource
	// manifest of each, without its name. Names begin with prefix.
	manifest []byte
	prefix   string
	// composition that Crossplane composes them by; "" where the provider alone works for them.
	composition string
}

func kindAlgorithm() kind {
	return kind{
		title: "Algorithms", at: schema.GroupVersionResource{Group: "capstan.dev", Version: "v1alpha1", Resource: "algorithms"},
		manifest: algorithm, prefix: "reco", composition: "algorithm",
	}
}

func kindDatabase() kind {
	return kind{
		title: "Databases", at: schema.GroupVersionResource{Group: "capstan.dev", Version: "v1alpha1", Resource: "databases"},
		manifest: database, prefix: "orders", composition: "database",
	}
}

func kindBucket() kind {
	return kind{
		title: "Buckets", at: schema.GroupVersionResource{Group: "storage.capstan.dev", Version: "v1alpha1", Resource: "buckets"},
		manifest: bucket, prefix: "files",
	}
}

func kindCredential() kind {
	return kind{
		title: "Credentials", at: schema.GroupVersionResource{Group: "credentials.capstan.dev", Version: "v1alpha1", Resource: "credentials"},
		manifest: credential, prefix: "login",
	}
}

// A name of an object.
type name struct{ namespace, name string }

func (n name) key() string { return key(n.namespace, n.name) }

// names of n objects, perNamespace in each namespace.
func names(tenant, prefix string, n, perNamespace int) []name {
	all := make([]name, n)
	for i := range all {
		all[i] = name{fmt.Sprintf("%s-%03d", tenant, i/perNamespace), fmt.Sprintf("%s-%02d", prefix, i%perNamespace)}
	}
	return all
}

// A fleet is all objects of a kind that tenants have, and what is seen of them.
type fleet struct {
	kind
	*observer

	// all of the fleet. A noisy tenant has others.
	all []name
}

// object of the fleet, as a tenant writes it.
func (f fleet) object(n name) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(f.manifest, &o.Object); err != nil {
		return nil, fmt.Errorf("cannot read the manifest of %s: %w", f.title, err)
	}
	o.SetNamespace(n.namespace)
	o.SetName(n.name)
	if _, routed, _ := unstructured.NestedMap(o.Object, "spec", "route"); !routed {
		return o, nil
	}
	if err := unstructured.SetNestedField(o.Object, n.name+"."+n.namespace+".example.org", "spec", "route", "host"); err != nil {
		return nil, fmt.Errorf("cannot give %q a host: %w", n.key(), err)
	}
	return o, nil
}

// made is what the report says of the fleet: how many there are, and how many objects the first is composed of.
func (f fleet) made(ctx context.Context, client dynamic.Interface) (Made, error) {
	m := Made{Kind: f.title, Count: len(f.all)}
	if f.composition == "" {
		return m, nil
	}
	o, err := client.Resource(f.at).Namespace(f.all[0].namespace).Get(ctx, f.all[0].name, metav1.GetOptions{})
	if err != nil {
		return m, fmt.Errorf("cannot count objects: %w", err)
	}
	refs, _, err := unstructured.NestedSlice(o.Object, "spec", "crossplane", "resourceRefs")
	if err != nil {
		return m, fmt.Errorf("cannot count objects: %w", err)
	}
	m.Objects = len(refs)
	return m, nil
}
