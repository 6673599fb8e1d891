// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

// Conditions of a connection: of every kind that connects to an outside service, and of its ProviderConfig.
const (
	// TypeConnected: True when the outside service responded to the latest request. While it is False, nothing outside
	// changes and the provider retries with growing delays.
	TypeConnected xpv2.ConditionType = "Connected"
)

// Reasons of the condition Connected.
const (
	// ReasonAnswered: the service carried out the request. Nothing to do.
	ReasonAnswered xpv2.ConditionReason = "Answered"
	// ReasonConfigNotFound: there is no ProviderConfig or ClusterProviderConfig of this name. Create it or correct
	// providerConfigRef.
	ReasonConfigNotFound xpv2.ConditionReason = "ConfigNotFound"
	// ReasonConfigOfOtherBackend: the config is for another kind of service. Correct providerConfigRef.
	ReasonConfigOfOtherBackend xpv2.ConditionReason = "ConfigOfOtherBackend"
	// ReasonNamespaceNotAllowed: spec.allowedNamespaces of the ClusterProviderConfig does not include this namespace.
	ReasonNamespaceNotAllowed xpv2.ConditionReason = "NamespaceNotAllowed"
	// ReasonCredentialsMissing: the Secret, or a key of it, does not exist. Create it.
	ReasonCredentialsMissing xpv2.ConditionReason = "CredentialsMissing"
	// ReasonInvalidConfig: the config is invalid, for instance because its certificates cannot be read. Correct it.
	ReasonInvalidConfig xpv2.ConditionReason = "InvalidConfig"
	// ReasonAddressRefused: the URL leads to an address that the config of a namespace must not reach.
	ReasonAddressRefused xpv2.ConditionReason = "AddressRefused"
	// ReasonHostUnknown: the host name cannot be resolved. Correct the URL or the DNS.
	ReasonHostUnknown xpv2.ConditionReason = "HostUnknown"
	// ReasonUnreachable: nothing responds at the address. Check the URL, the network and the service.
	ReasonUnreachable xpv2.ConditionReason = "Unreachable"
	// ReasonTLSFailed: the server's certificate is not trusted, or the server does not use TLS. Set caBundle or correct
	// the URL.
	ReasonTLSFailed xpv2.ConditionReason = "TLSFailed"
	// ReasonTimedOut: the service did not respond in time.
	ReasonTimedOut xpv2.ConditionReason = "TimedOut"
	// ReasonCredentialsRefused: the service does not know the credentials, or they have expired. Update the Secret.
	ReasonCredentialsRefused xpv2.ConditionReason = "CredentialsRefused"
	// ReasonClockSkew: the clocks of provider and service differ too much for signed requests. Correct the clocks.
	ReasonClockSkew xpv2.ConditionReason = "ClockSkew"
	// ReasonForbidden: the credentials are valid, but have no permission for this request. The message names it.
	ReasonForbidden xpv2.ConditionReason = "Forbidden"
	// ReasonHostRefused: the service rejects requests with this host name. Correct the URL or the service's list of
	// hosts.
	ReasonHostRefused xpv2.ConditionReason = "HostRefused"
	// ReasonNotFound: something that the request needs does not exist, for instance the model of a version.
	ReasonNotFound xpv2.ConditionReason = "NotFound"
	// ReasonNameTaken: the name has another owner. Choose another name.
	ReasonNameTaken xpv2.ConditionReason = "NameTaken"
	// ReasonNotEmpty: the object to delete still holds data. Empty it first.
	ReasonNotEmpty xpv2.ConditionReason = "NotEmpty"
	// ReasonRejected: the service rejects the request as invalid. The message has its error.
	ReasonRejected xpv2.ConditionReason = "Rejected"
	// ReasonConflict: another client changed the same object at the same time. The provider retries.
	ReasonConflict xpv2.ConditionReason = "Conflict"
	// ReasonThrottled: the service requires fewer requests. The provider retries later.
	ReasonThrottled xpv2.ConditionReason = "Throttled"
	// ReasonServerError: the service failed. The provider retries.
	ReasonServerError xpv2.ConditionReason = "ServerError"
	// ReasonUnknownAnswer: the response is not one of this service, for instance because it came from a proxy, or was
	// cut off or too large.
	ReasonUnknownAnswer xpv2.ConditionReason = "UnknownAnswer"
	// ReasonNotImplemented: the service does not support what the request needs. Remove that field from the spec.
	ReasonNotImplemented xpv2.ConditionReason = "NotImplemented"
)
