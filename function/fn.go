// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/runtime/schema"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/server"
)

// contextKeyNow overrides the clock with a time in RFC 3339, for previews.
const contextKeyNow = "capstan.dev/now"

// Crossplane applies composed objects one by one on every pass, and takes no message above 4 MiB. Neither can be
// configured. Both limits leave room for other steps of the pipeline.
const (
	maxObjects = 80
	maxBytes   = 2 << 20
)

// A Function answers a request of Crossplane with what the planner of the composite resource's kind decides.
type Function struct {
	fnv1.UnimplementedFunctionRunnerServiceServer

	kinds map[schema.GroupKind]kind
	clock func() time.Time
}

// RunFunction never returns an error. A fatal result ends Crossplane's pass before anything is applied or deleted.
func (f *Function) RunFunction(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	k := f.kinds[kindOf(req).GroupKind()]
	rsp, err := f.run(req, k)
	if err != nil {
		rsp = server.Fatal(req, err.Error())
		rsp.Requirements = requirements(req, k.optional, nil)
	}
	return rsp, nil
}

// kindOf the composite resource.
func kindOf(req *fnv1.RunFunctionRequest) schema.GroupVersionKind {
	xr := &object{resource: req.GetObserved().GetComposite().GetResource()}
	return schema.FromAPIVersionAndKind(xr.str("apiVersion"), xr.str("kind"))
}

func (f *Function) run(req *fnv1.RunFunctionRequest, k kind) (*fnv1.RunFunctionResponse, error) {
	xr := &object{resource: req.GetObserved().GetComposite().GetResource()}
	if xr.resource == nil {
		return nil, errors.New("function-capstan is for Compositions only: there is no composite resource to compose " +
			"for, as in an Operation. Use it in the pipeline of a Composition")
	}
	gvk := kindOf(req)
	if k.plan == nil {
		return nil, fmt.Errorf("cannot compose for %q: function-capstan composes for %s only", gvk.GroupKind(), strings.Join(f.names(), ", "))
	}
	now, err := f.now(req)
	if err != nil {
		return nil, err
	}
	settings, settingsErr := settingsOf(req)
	p, err := k.plan(compose.Request{
		Now:         now,
		Composite:   xr,
		Observed:    objects(req.GetObserved().GetResources()),
		Settings:    settings,
		SettingsErr: settingsErr,
		Unsupported: unsupported(req),
		Required:    required(req),
		Kinds:       availability(req, k.optional),
	})
	if err != nil {
		return nil, fmt.Errorf("cannot plan %s %q: %w", gvk.Kind, xr.name(), err)
	}
	if n := len(p.Objects); n > maxObjects {
		return nil, fmt.Errorf("cannot compose %s %q: it takes %d objects, and the limit is %d. Ask for less in its "+
			"spec, or divide it into several of kind %s", gvk.Kind, xr.name(), n, maxObjects, gvk.Kind)
	}
	rsp, err := respond(req, p)
	if err != nil {
		return nil, fmt.Errorf("cannot answer for %s %q: %w", gvk.Kind, xr.name(), err)
	}
	rsp.Requirements = requirements(req, k.optional, p.Requires)
	if n := proto.Size(rsp); n > maxBytes {
		name, size := largest(rsp.GetDesired().GetResources())
		return nil, fmt.Errorf("cannot compose %s %q: its objects take %d KiB, and the limit is %d KiB. The largest is "+
			"%q with %d KiB: make what it holds smaller in the spec", gvk.Kind, xr.name(), n>>10, maxBytes>>10, name, size>>10)
	}
	return rsp, nil
}

// now is the time of the request's context, or of the clock.
func (f *Function) now(req *fnv1.RunFunctionRequest) (time.Time, error) {
	v, ok := req.GetContext().GetFields()[contextKeyNow]
	if !ok {
		return f.clock().UTC(), nil
	}
	s, ok := v.GetKind().(*structpb.Value_StringValue)
	if !ok {
		return time.Time{}, fmt.Errorf("cannot use context key %q: it must be a string", contextKeyNow)
	}
	now, err := time.Parse(time.RFC3339, s.StringValue)
	if err != nil {
		return time.Time{}, fmt.Errorf("cannot use context key %q: %w", contextKeyNow, err)
	}
	return now.UTC(), nil
}

// names of the kinds that the function composes for, sorted.
func (f *Function) names() []string {
	names := make([]string, 0, len(f.kinds))
	for gk := range f.kinds {
		names = append(names, gk.String())
	}
	slices.Sort(names)
	return names
}
