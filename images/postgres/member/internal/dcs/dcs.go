// SPDX-License-Identifier: Apache-2.0

// Package dcs reads and writes what Patroni keeps in ConfigMaps, its distributed configuration store: the configuration of a
// scope and the leader's lock.
package dcs

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/capstan-dev/capstan/images/member/kube"
	"github.com/capstan-dev/capstan/images/member/pods"
)

// annotationHolder of the object that is the leader's lock names the pod that holds it.
const annotationHolder = "leader"

// A Client of the ConfigMaps of one scope.
type Client struct {
	kube             kube.Client
	namespace, scope string
}

// New Client of a scope.
func New(k kube.Client, namespace, scope string) *Client { return &Client{k, namespace, scope} }

// config is what members need of Patroni's configuration.
type config struct {
	Fence    string `json:"capstan_fence"`
	To       string `json:"capstan_fence_to"`
	Seconds  int64  `json:"capstan_fence_seconds"`
	Withdraw bool   `json:"capstan_fence_withdraw"`
	Pause    bool   `json:"pause"`
	TTL      int    `json:"ttl"`
	Strict   bool   `json:"synchronous_mode_strict"`
	// Slots that Patroni keeps. There is one for a copy that follows.
	Slots map[string]json.RawMessage `json:"slots"`
}

// config of the scope. It is zero when there is none yet.
func (c *Client) config(ctx context.Context) (config, error) {
	annotations, err := c.annotations(ctx, "config")
	if err != nil {
		return config{}, err
	}
	return parse(annotations[annotationConfig])
}

// parse a configuration of Patroni. The configuration of an empty text is zero.
func parse(text string) (config, error) {
	if text == "" {
		return config{}, nil
	}
	var out config
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		return config{}, fmt.Errorf("cannot understand the configuration of Patroni: %w", err)
	}
	return out, nil
}

// Holder returns the pod that holds the leader's lock, or held it last.
func (c *Client) Holder(ctx context.Context) (string, error) {
	annotations, err := c.annotations(ctx, "leader")
	if err != nil {
		return "", fmt.Errorf("cannot find out which member is the leader of %s: %w", c.scope, err)
	}
	return annotations[annotationHolder], nil
}

// annotations of an object of the scope. There are none when it does not exist.
func (c *Client) annotations(ctx context.Context, object string) (map[string]string, error) {
	cm, err := c.object(ctx, object)
	if err != nil || cm.Annotations == nil {
		return map[string]string{}, err
	}
	return cm.Annotations, nil
}

// object of the scope. It is empty when it does not exist.
func (c *Client) object(ctx context.Context, name string) (*corev1.ConfigMap, error) {
	cm := &corev1.ConfigMap{}
	err := c.kube.REST.Get().Namespace(c.namespace).Resource("configmaps").Name(c.scope + "-" + name).Do(ctx).Into(cm)
	if kerrors.IsNotFound(err) {
		return &corev1.ConfigMap{}, nil
	}
	return cm, err
}

// A Lock is the leader's lock as it was observed.
type Lock struct {
	// Holder is the pod that holds it, or nothing.
	Holder string
	// Version of the object, which changes each time that the lock is renewed.
	Version string
}

// Locks calls a function with the leader's lock, and whenever it changes, until the stream or the context ends.
func (c *Client) Locks(ctx context.Context, observe func(Lock)) error {
	one := fields.OneTermEqualSelector("metadata.name", c.scope+"-leader").String()
	stream, err := c.kube.Stream.Get().Namespace(c.namespace).Resource("configmaps").Param("fieldSelector", one).Param("watch", "true").Watch(ctx)
	if err != nil {
		return fmt.Errorf("cannot watch the leader's lock: %w", err)
	}
	defer stream.Stop()
	for e := range stream.ResultChan() {
		switch o := e.Object.(type) {
		case *corev1.ConfigMap:
			observe(Lock{Holder: o.Annotations[annotationHolder], Version: o.ResourceVersion})
		case *metav1.Status:
			return fmt.Errorf("cannot watch the leader's lock: %w", kerrors.FromObject(o))
		}
	}
	return ctx.Err()
}

// Holds checks with the API server that a pod holds the leader's lock at this moment. The error is pods.ErrNotHolder when it does not.
func (c *Client) Holds(ctx context.Context, pod string) error {
	holder, err := c.Holder(ctx)
	if err == nil && holder != pod {
		err = pods.ErrNotHolder
	}
	return err
}

// Synchronous is what Patroni records of synchronous replication. Without any, it is zero.
type Synchronous struct {
	// Leader by its pod, and Voters are the pods of the standbys that may acknowledge its commits.
	Leader string
	Voters []string
	// Quorum is how many voters beside itself a member has to hear of before it is promoted.
	Quorum int
}

// Synchronous replication as it is recorded.
func (c *Client) Synchronous(ctx context.Context) (Synchronous, error) {
	annotations, err := c.annotations(ctx, "sync")
	if err != nil {
		return Synchronous{}, fmt.Errorf("cannot find out which standbys are synchronous: %w", err)
	}
	s := Synchronous{
		Leader: annotations["leader"], Voters: strings.FieldsFunc(annotations["sync_standby"], func(r rune) bool { return r == ',' }),
	}
	if quorum := annotations["quorum"]; quorum != "" {
		if s.Quorum, err = strconv.Atoi(quorum); err != nil {
			return Synchronous{}, fmt.Errorf("cannot understand the quorum that Patroni recorded: %w", err)
		}
	}
	return s, nil
}

// Strict reports whether commits wait for a standby, even when there is none.
func (c *Client) Strict(ctx context.Context) (bool, error) {
	config, err := c.config(ctx)
	if err != nil {
		return false, fmt.Errorf("cannot find out whether commits wait for a standby: %w", err)
	}
	return config.Strict, nil
}

// Lifetime is Patroni's ttl: how long the lock lives that its holder does not renew. It is 0 while no member may be promoted, and
// when there is no configuration yet.
func (c *Client) Lifetime(ctx context.Context) (time.Duration, error) {
	config, err := c.config(ctx)
	if err != nil {
		return 0, fmt.Errorf("cannot find out how long a lock lives: %w", err)
	}
	if config.Pause {
		return 0, nil
	}
	return time.Duration(config.TTL) * time.Second, nil
}
