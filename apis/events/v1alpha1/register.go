// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion of events from outside.
var GroupVersion = schema.GroupVersion{Group: "events.capstan.dev", Version: "v1alpha1"}

var (
	// ReceiverGroupVersionKind is the type of a Receiver.
	ReceiverGroupVersionKind = GroupVersion.WithKind("Receiver")
	// SignalGroupVersionKind is the type of a Signal.
	SignalGroupVersionKind = GroupVersion.WithKind("Signal")
)

// SchemeBuilder registers the types of this package.
var SchemeBuilder = runtime.NewSchemeBuilder(func(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Receiver{}, &ReceiverList{}, &Signal{}, &SignalList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
})

// AddToScheme adds the types of this package to a scheme.
var AddToScheme = SchemeBuilder.AddToScheme
