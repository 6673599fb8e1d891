// SPDX-License-Identifier: Apache-2.0

// Package jobtest plays what Crossplane and Kubernetes do with the Jobs of Trainings and Pipelines, for tests of their planners.
package jobtest

import (
	"strings"
	"testing"
	"time"

	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
)

// A Cluster has the objects of one composite resource by their names within the composition. The names of Jobs begin with Prefix.
type Cluster struct {
	Prefix string
	// Composed objects that Crossplane refers to.
	Composed map[string]compose.Object
	// Ending are Jobs that are no longer desired, and end with their pods.
	Ending map[string]compose.Object
	// Lost objects exist, and Crossplane has no reference to them.
	Lost map[string]compose.Object

	server *composetest.Server
}

// NewCluster without objects.
func NewCluster(prefix string) *Cluster {
	return &Cluster{
		Prefix: prefix, Composed: map[string]compose.Object{}, Ending: map[string]compose.Object{}, Lost: map[string]compose.Object{},
		server: composetest.NewServer(),
	}
}

// Compose the objects of a plan, as Crossplane does. A Job that is no longer desired ends. One that is desired and exists already is
// referred to.
func (c *Cluster) Compose(tb testing.TB, p *compose.Plan, now time.Time) {
	tb.Helper()
	next, err := c.server.Compose(c.Composed, p)
	if err != nil {
		tb.Fatal(err)
	}
	for resource, o := range c.Composed {
		if p.Objects[resource].Object == nil && strings.HasPrefix(resource, c.Prefix) {
			c.Ending[resource] = composetest.With(o, composetest.Parse(tb, `{metadata: {deletionTimestamp: "2026-11-20T12:00:00Z"}}`))
		}
	}
	for resource, o := range next {
		switch {
		case c.Composed[resource] != nil:
		case c.Ending[resource] != nil: // An object of that name still exists.
			next[resource] = c.Ending[resource]
			delete(c.Ending, resource)
		case c.Lost[resource] != nil:
			next[resource] = c.Lost[resource]
			delete(c.Lost, resource)
		default:
			next[resource] = composetest.With(o, composetest.Parse(tb, `{metadata: {creationTimestamp: "`+now.Format(time.RFC3339)+`"}}`))
		}
	}
	c.Composed = next
}

// Jobs that exist, also those that end and those that are lost, by their names within the composition.
func (c *Cluster) Jobs() map[string]compose.Object {
	all := map[string]compose.Object{}
	for _, from := range []map[string]compose.Object{c.Lost, c.Ending, c.Composed} {
		for resource, o := range from {
			if strings.HasPrefix(resource, c.Prefix) {
				all[resource] = o
			}
		}
	}
	return all
}

// Find the Job that a planner requires, or nil.
func (c *Cluster) Find(of compose.Requirement) compose.Object {
	for _, o := range c.Jobs() {
		if compose.TextOf(o, "metadata", "name") == of.Name {
			return o
		}
	}
	return nil
}

// Gone are the pods of Jobs that end, and the Jobs with them.
func (c *Cluster) Gone() {
	clear(c.Ending)
	for resource, o := range c.Composed {
		if compose.TextOf(o, "metadata", "deletionTimestamp") != "" {
			delete(c.Composed, resource)
		}
	}
}
