// SPDX-License-Identifier: Apache-2.0

package dcs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-dev/capstan/apis/members"
)

const (
	// annotationSystem of the configuration has the system identifier of the first data. It is there and empty while a Patroni makes that
	// data: all others wait for it, and nothing says which Patroni it is.
	annotationSystem = "initialize"
	// annotationBegins of the configuration is the member that makes the first data.
	annotationBegins = "capstan.dev/begins"
)

// System returns the system identifier of the data that the Database began with. It is empty while the Database is not known to
// have had a leader.
func (c *Client) System(ctx context.Context) (string, error) {
	annotations, err := c.annotations(ctx, "config")
	if err != nil {
		return "", fmt.Errorf("cannot find out whether the Database began: %w", err)
	}
	return annotations[annotationSystem], nil
}

// Begin makes a member the one that makes the first data of a database, unless that is another one which is not gone. It returns the
// member that it is. Patroni of the given member must not run: if it was ended while it made the data, it left a claim that all members,
// and itself, would wait for. Begin removes it.
func (c *Client) Begin(ctx context.Context, database, member string, gone func(member string) bool) (string, error) {
	cm, err := c.object(ctx, "config")
	if err != nil {
		return "", fmt.Errorf("cannot find out which member makes the first data: %w", err)
	}
	system, claimed := cm.Annotations[annotationSystem]
	by := cm.Annotations[annotationBegins]
	switch {
	case system != "":
		return "", errors.New("the Database began meanwhile")
	case by == member && !claimed:
		return member, nil
	case by != "" && by != member && !gone(by):
		return by, nil
	}
	if err := c.begin(ctx, *cm, database, member); err != nil {
		// Another member may have been quicker. The next look shows it.
		return "", fmt.Errorf("cannot record which member makes the first data: %w", err)
	}
	return member, nil
}

// begin records the member in an object, if that is still as it was read.
func (c *Client) begin(ctx context.Context, cm corev1.ConfigMap, database, member string) error {
	maps := c.kube.REST
	if cm.Name == "" {
		// Patroni finds its objects by these labels.
		body, err := json.Marshal(corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name: c.scope + "-config", Labels: map[string]string{members.LabelDatabase: database, members.LabelScope: c.scope},
			Annotations: map[string]string{annotationBegins: member},
		}})
		if err != nil {
			return err
		}
		return maps.Post().Namespace(c.namespace).Resource("configmaps").Body(body).SetHeader("Content-Type", "application/json").Do(ctx).Error()
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": cm.ResourceVersion, "annotations": map[string]any{annotationBegins: member, annotationSystem: nil},
	}})
	if err != nil {
		return err
	}
	return maps.Patch(types.MergePatchType).Namespace(c.namespace).Resource("configmaps").Name(cm.Name).Body(body).Do(ctx).Error()
}
