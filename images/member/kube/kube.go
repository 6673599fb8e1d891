// SPDX-License-Identifier: Apache-2.0

// Package kube reaches the API server from a member's pod. Clients that know all kinds of Kubernetes would make the program three
// times its size.
package kube

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

// Timeout of one request.
const Timeout = 5 * time.Second

// A Client of the API server, for kinds of core/v1.
type Client struct {
	// REST is for single requests, and Stream for answers that do not end.
	REST, Stream rest.Interface
}

// InCluster is a Client with the account of the pod.
func InCluster() (Client, error) {
	cfg, err := rest.InClusterConfig()
	if err != nil {
		return Client{}, fmt.Errorf("cannot reach the API server: %w", err)
	}
	return New(cfg)
}

// New Client with a configuration.
func New(cfg *rest.Config) (Client, error) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return Client{}, fmt.Errorf("cannot make a client: %w", err)
	}
	metav1.AddToGroupVersion(scheme, corev1.SchemeGroupVersion)
	cfg = rest.CopyConfig(cfg)
	cfg.APIPath, cfg.GroupVersion = "/api", &corev1.SchemeGroupVersion
	cfg.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	cfg.Timeout, cfg.QPS = Timeout, -1 // a member sends few requests, and none of them must wait
	cfg.UserAgent = "capstan-member"
	single, err := rest.RESTClientFor(cfg)
	if err != nil {
		return Client{}, fmt.Errorf("cannot make a client: %w", err)
	}
	cfg.Timeout = 0
	stream, err := rest.RESTClientFor(cfg)
	if err != nil {
		return Client{}, fmt.Errorf("cannot make a client: %w", err)
	}
	return Client{single, stream}, nil
}
