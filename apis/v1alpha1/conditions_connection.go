// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

// Conditions of a connection: of every kind that talks to an outside service,
// and of what configures it.
const (
	// TypeConnected tells how the outside service answered the last time that it
	// was asked. While it is False, nothing outside is changed and the provider
	// tries again by itself, less and less often.
	TypeConnected xpv2.ConditionType = "Connected"
)

// Reasons of the condition Connected.
const (
	// ReasonAnswered: the service answered and did what it was asked.
	ReasonAnswered xpv2.ConditionReason = "Answered"
	// ReasonConfigNotFound: there is no such ProviderConfig or
	// ClusterProviderConfig.
	ReasonConfigNotFound xpv2.ConditionReason = "ConfigNotFound"
	// ReasonConfigOfOtherBackend: the config is for another kind of service.
	ReasonConfigOfOtherBackend xpv2.ConditionReason = "ConfigOfOtherBackend"
	// ReasonNamespaceNotAllowed: the ClusterProviderConfig is not for this
	// namespace.
	ReasonNamespaceNotAllowed xpv2.ConditionReason = "NamespaceNotAllowed"
	// ReasonCredentialsMissing: the Secret, or a key of it, is not there.
	ReasonCredentialsMissing xpv2.ConditionReason = "CredentialsMissing"
	// ReasonInvalidConfig: the config cannot be used, for instance because its
	// certificates cannot be read.
	ReasonInvalidConfig xpv2.ConditionReason = "InvalidConfig"
	// ReasonAddressRefused: the URL leads to an address that a namespace's own
	// config must not reach.
	ReasonAddressRefused xpv2.ConditionReason = "AddressRefused"
	// ReasonHostUnknown: the host name cannot be resolved.
	ReasonHostUnknown xpv2.ConditionReason = "HostUnknown"
	// ReasonUnreachable: nothing answers at the address.
	ReasonUnreachable xpv2.ConditionReason = "Unreachable"
	// ReasonTLSFailed: the server's certificate is not trusted, or the server does
	// not speak TLS.
	ReasonTLSFailed xpv2.ConditionReason = "TLSFailed"
	// ReasonTimedOut: the service did not answer in time.
	ReasonTimedOut xpv2.ConditionReason = "TimedOut"
	// ReasonCredentialsRefused: the service does not know the credentials, or they
	// have expired.
	ReasonCredentialsRefused xpv2.ConditionReason = "CredentialsRefused"
	// ReasonClockSkew: the clocks of provider and service differ too much for
	// signed requests.
	ReasonClockSkew xpv2.ConditionReason = "ClockSkew"
	// ReasonForbidden: the service knows the credentials and does not let them do
	// this.
	ReasonForbidden xpv2.ConditionReason = "Forbidden"
	// ReasonHostRefused: the service does not want to be called by this host name.
	ReasonHostRefused xpv2.ConditionReason = "HostRefused"
	// ReasonNotFound: what a request needs is not there, for instance the model of
	// a version.
	ReasonNotFound xpv2.ConditionReason = "NotFound"
	// ReasonNameTaken: the name belongs to somebody else.
	ReasonNameTaken xpv2.ConditionReason = "NameTaken"
	// ReasonNotEmpty: what is to be deleted holds data.
	ReasonNotEmpty xpv2.ConditionReason = "NotEmpty"
	// ReasonRejected: the service says that a request is wrong.
	ReasonRejected xpv2.ConditionReason = "Rejected"
	// ReasonConflict: somebody else changed the same thing at the same time.
	ReasonConflict xpv2.ConditionReason = "Conflict"
	// ReasonThrottled: the service wants fewer requests.
	ReasonThrottled xpv2.ConditionReason = "Throttled"
	// ReasonServerError: the service failed.
	ReasonServerError xpv2.ConditionReason = "ServerError"
	// ReasonUnknownAnswer: the answer is not what this service says, for instance
	// because a proxy answered, or it was cut off or too large.
	ReasonUnknownAnswer xpv2.ConditionReason = "UnknownAnswer"
	// ReasonNotImplemented: the service does not offer what a request needs.
	ReasonNotImplemented xpv2.ConditionReason = "NotImplemented"
)
