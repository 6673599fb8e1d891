// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
)

// Numbers of the fields of an answer and of what is in it.
const (
	responseDesired protowire.Number = 2
	responseContext protowire.Number = 4

	resourceReady protowire.Number = 3
)

// An Answer to Crossplane.
type Answer struct {
	// Rest of the answer: all but what is below.
	Rest *fnv1.RunFunctionResponse

	// Context that the request came with, or nil.
	Context *Object

	// Desired has the composite resource and what earlier steps compose.
	Desired *fnv1.State

	// Composed objects by their names. They win over objects of earlier steps.
	Composed map[string]Resource

	wire []byte
}

// A Resource is an encoded object (see EncodeComposed), and whether it is ready.
type Resource struct {
	Object string
	Ready  fnv1.Ready
}

// View of the object.
func (r Resource) View() *Object { return &Object{raw: r.Object} }

// Wire is the answer as bytes. It must not be changed any more.
func (a *Answer) Wire() ([]byte, error) {
	if a.wire != nil {
		return a.wire, nil
	}
	stock := proto.MarshalOptions{Deterministic: true}
	rest, err := stock.Marshal(a.Rest)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the answer: %w", err)
	}
	desired, err := stock.Marshal(a.earlier())
	if err != nil {
		return nil, fmt.Errorf("cannot encode what earlier steps desire: %w", err)
	}
	size := len(desired)
	for name, r := range a.Composed {
		size += sizeOf(stateResources, r.entry(name))
	}
	b := make([]byte, 0, len(rest)+sizeOf(responseDesired, size)+a.contextSize())
	b = append(b, rest...)
	if a.Desired != nil || len(a.Composed) > 0 {
		b = begin(b, responseDesired, size)
		b = append(b, desired...)
		for _, name := range slices.Sorted(maps.Keys(a.Composed)) {
			b = a.Composed[name].append(b, name)
		}
	}
	if a.Context != nil {
		b = begin(b, responseContext, len(a.Context.raw))
		b = append(b, a.Context.raw...)
	}
	a.wire = b
	return b, nil
}

// earlier is what the stock codec encodes of the desired state.
func (a *Answer) earlier() *fnv1.State {
	if len(a.Desired.GetResources()) == 0 {
		return a.Desired
	}
	resources := maps.Clone(a.Desired.GetResources())
	maps.DeleteFunc(resources, func(name string, _ *fnv1.Resource) bool { _, ours := a.Composed[name]; return ours })
	return &fnv1.State{Composite: a.Desired.GetComposite(), Resources: resources}
}

func (a *Answer) contextSize() int {
	if a.Context == nil {
		return 0
	}
	return sizeOf(responseContext, len(a.Context.raw))
}

// append the entry of the object in the State.
func (r Resource) append(b []byte, name string) []byte {
	b = begin(b, stateResources, r.entry(name))
	b = begin(b, entryKey, len(name))
	b = append(b, name...)
	b = begin(b, entryValue, r.size())
	b = begin(b, resourceResource, len(r.Object))
	b = append(b, r.Object...)
	b = protowire.AppendTag(b, resourceReady, protowire.VarintType)
	return protowire.AppendVarint(b, uint64(r.Ready)) //nolint:gosec // An enumeration is not negative.
}

// entry is the size of the object with its name, and size of the object without it.
func (r Resource) entry(name string) int {
	return sizeOf(entryKey, len(name)) + sizeOf(entryValue, r.size())
}

func (r Resource) size() int {
	ready := protowire.SizeVarint(uint64(r.Ready)) //nolint:gosec // An enumeration is not negative.
	return sizeOf(resourceResource, len(r.Object)) + protowire.SizeTag(resourceReady) + ready
}

// begin a message of a size.
func begin(b []byte, n protowire.Number, size int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.BytesType), uint64(size)) //nolint:gosec // A size is not negative.
}

// sizeOf a field with a message of a size.
func sizeOf(n protowire.Number, size int) int {
	return protowire.SizeTag(n) + protowire.SizeBytes(size)
}
