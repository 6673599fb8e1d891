// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import corev1 "k8s.io/api/core/v1"

// DatabaseAffinity is a part of the Affinity of core/v1, with the same names. Pods that it names are pods of the Database's
// namespace: there is no field for other namespaces, because a member can keep pods away from its node, also later ones.
type DatabaseAffinity struct {
	// NodeAffinity chooses nodes by expressions about their labels, for every pod of the Database. A node must also have the
	// labels in nodeSelector. Default: every node.
	//
	// +kubebuilder:example={"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":{{"matchExpressions":{{"key":"example.org/disk","operator":"In","values":{"nvme"}}}}}},"preferredDuringSchedulingIgnoredDuringExecution":{{"weight":50,"preference":{"matchExpressions":{{"key":"example.org/generation","operator":"In","values":{"5","6"}}}}}}}
	// +optional
	NodeAffinity *NodeAffinity `json:"nodeAffinity,omitempty"`

	// PodAffinity brings members to where other pods of this namespace run, for instance a cache. It is not for poolers and
	// Jobs. Members are spread as before: a term that would keep them together is refused. Default: none.
	//
	// +kubebuilder:example={"preferredDuringSchedulingIgnoredDuringExecution":{{"weight":50,"podAffinityTerm":{"labelSelector":{"matchLabels":{"app":"orders"}},"topologyKey":"topology.kubernetes.io/zone"}}}}
	// +optional
	PodAffinity *PodAffinity `json:"podAffinity,omitempty"`

	// PodAntiAffinity keeps members away from other pods of this namespace, for instance members of another Database, and
	// those pods away from members. It is not for poolers and Jobs, and a required term that keeps these away is refused.
	// Default: none beside the spread of members.
	//
	// +kubebuilder:example={"requiredDuringSchedulingIgnoredDuringExecution":{{"labelSelector":{"matchExpressions":{{"key":"app.kubernetes.io/name","operator":"In","values":{"postgres","mysql"}}}},"topologyKey":"kubernetes.io/hostname"}}}
	// +optional
	PodAntiAffinity *PodAffinity `json:"podAntiAffinity,omitempty"`
}

// NodeAffinity is a part of the NodeAffinity of core/v1.
type NodeAffinity struct {
	// RequiredDuringSchedulingIgnoredDuringExecution has conditions that a node must meet. A member that runs stays when its
	// node does not meet them any more.
	//
	// +optional
	RequiredDuringSchedulingIgnoredDuringExecution *NodeTerms `json:"requiredDuringSchedulingIgnoredDuringExecution,omitempty"`

	// PreferredDuringSchedulingIgnoredDuringExecution has conditions of nodes that are better than others.
	//
	// +kubebuilder:validation:MaxItems=4
	// +listType=atomic
	// +optional
	PreferredDuringSchedulingIgnoredDuringExecution []PreferredNodes `json:"preferredDuringSchedulingIgnoredDuringExecution,omitempty"`
}

// NodeTerms are conditions: a node must meet at least one.
type NodeTerms struct {
	// NodeSelectorTerms are conditions: a node must meet at least one.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	// +listType=atomic
	NodeSelectorTerms []NodeTerm `json:"nodeSelectorTerms"`
}

// NodeTerm is a condition on the labels of a node.
type NodeTerm struct {
	// MatchExpressions that the labels of a node must all meet.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	MatchExpressions []NodeRequirement `json:"matchExpressions"`
}

// NodeRequirement is an expression about one label of a node.
//
// +kubebuilder:validation:XValidation:rule="!(self.operator in ['In', 'NotIn']) || has(self.values) && size(self.values) > 0",message="operators In and NotIn need values"
// +kubebuilder:validation:XValidation:rule="!(self.operator in ['Exists', 'DoesNotExist']) || !has(self.values) || size(self.values) == 0",message="operators Exists and DoesNotExist take no values"
// +kubebuilder:validation:XValidation:rule="!(self.operator in ['Gt', 'Lt']) || has(self.values) && size(self.values) == 1 && self.values[0].matches('^-?[0-9]{1,18}$')",message="operators Gt and Lt need one value, a whole number in quotes"
type NodeRequirement struct {
	// Key of the label.
	//
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",message="must be a label key, for instance example.org/disk"
	// +kubebuilder:example="example.org/disk"
	Key string `json:"key"`

	// Operator between the label and the values: In, NotIn, Exists, DoesNotExist, Gt or Lt.
	//
	// +kubebuilder:validation:Enum=In;NotIn;Exists;DoesNotExist;Gt;Lt
	// +kubebuilder:example=In
	Operator corev1.NodeSelectorOperator `json:"operator"`

	// Values of the label. Exists and DoesNotExist take none, Gt and Lt a whole number.
	//
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +kubebuilder:example={"nvme"}
	// +optional
	Values []LabelValue `json:"values,omitempty"`
}

// PreferredNodes are better than others.
type PreferredNodes struct {
	// Weight against other preferences, from 1 to 100.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:example=50
	Weight int32 `json:"weight"`

	// Preference is the condition that such a node meets.
	Preference NodeTerm `json:"preference"`
}

// PodAffinity is a part of the PodAffinity and the PodAntiAffinity of core/v1.
type PodAffinity struct {
	// RequiredDuringSchedulingIgnoredDuringExecution has terms that a node must all meet. A member stays Pending while none does.
	//
	// +kubebuilder:validation:MaxItems=4
	// +listType=atomic
	// +optional
	RequiredDuringSchedulingIgnoredDuringExecution []PodAffinityTerm `json:"requiredDuringSchedulingIgnoredDuringExecution,omitempty"`

	// PreferredDuringSchedulingIgnoredDuringExecution has terms that make a node better than others.
	//
	// +kubebuilder:validation:MaxItems=4
	// +listType=atomic
	// +optional
	PreferredDuringSchedulingIgnoredDuringExecution []PreferredPods `json:"preferredDuringSchedulingIgnoredDuringExecution,omitempty"`
}

// PodAffinityTerm selects pods of the Database's namespace, and says how near is near.
type PodAffinityTerm struct {
	// LabelSelector of the pods.
	LabelSelector PodSelector `json:"labelSelector"`

	// TopologyKey is the label of nodes whose value is the same where pods are near each other, for instance
	// kubernetes.io/hostname or topology.kubernetes.io/zone.
	//
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",message="must be a label key, for instance kubernetes.io/hostname"
	// +kubebuilder:example="kubernetes.io/hostname"
	TopologyKey string `json:"topologyKey"`
}

// PodSelector is the LabelSelector of core/v1. Pods must meet all that it has.
//
// +kubebuilder:validation:XValidation:rule="has(self.matchLabels) && size(self.matchLabels) > 0 || has(self.matchExpressions) && size(self.matchExpressions) > 0",message="set matchLabels or matchExpressions: every pod of the namespace would be selected"
type PodSelector struct {
	// MatchLabels that a pod must have.
	//
	// +kubebuilder:validation:MaxProperties=8
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 317 && k.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$'))",message="keys must be label keys, for instance app.kubernetes.io/name"
	// +kubebuilder:example={"app":"orders"}
	// +optional
	MatchLabels map[string]LabelValue `json:"matchLabels,omitempty"`

	// MatchExpressions that the labels of a pod must meet.
	//
	// +kubebuilder:validation:MaxItems=4
	// +listType=atomic
	// +optional
	MatchExpressions []PodRequirement `json:"matchExpressions,omitempty"`
}

// PodRequirement is an expression about one label of a pod.
//
// +kubebuilder:validation:XValidation:rule="!(self.operator in ['In', 'NotIn']) || has(self.values) && size(self.values) > 0",message="operators In and NotIn need values"
// +kubebuilder:validation:XValidation:rule="!(self.operator in ['Exists', 'DoesNotExist']) || !has(self.values) || size(self.values) == 0",message="operators Exists and DoesNotExist take no values"
type PodRequirement struct {
	// Key of the label.
	//
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",message="must be a label key, for instance app.kubernetes.io/name"
	// +kubebuilder:example="app.kubernetes.io/name"
	Key string `json:"key"`

	// Operator between the label and the values: In, NotIn, Exists or DoesNotExist.
	//
	// +kubebuilder:validation:Enum=In;NotIn;Exists;DoesNotExist
	// +kubebuilder:example=In
	Operator string `json:"operator"`

	// Values of the label. Exists and DoesNotExist take none.
	//
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +kubebuilder:example={"postgres","mysql"}
	// +optional
	Values []LabelValue `json:"values,omitempty"`
}

// PreferredPods make a node better than others.
type PreferredPods struct {
	// Weight against other preferences, from 1 to 100.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:example=50
	Weight int32 `json:"weight"`

	// PodAffinityTerm that such a node meets.
	PodAffinityTerm PodAffinityTerm `json:"podAffinityTerm"`
}
