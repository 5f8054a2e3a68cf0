"""A Kubernetes Deployment, each of whose pods is a node."""

from typing import Any, Final

from tuner.fleet.scripts.node_command import DRAIN_S, NodeCommand, at_least_one

MOUNTED: Final = "/etc/tuner-fleet"  # where a pod finds the certificates of a Secret
SCRATCH: Final = "/tmp"  # noqa: S108 - a folder of the pod, shared with no other pod
READABLE: Final = 0o440  # PostgreSQL's library refuses a key that others may read
NOBODY: Final = 65534  # user and group: a node needs no rights


def kubernetes_manifest(
    command: NodeCommand, name: str, nodes: int, cores: int, image: str, secret: str
) -> str:
    """Returns the YAML manifest of a Deployment whose pods are nodes, for ``kubectl apply``.

    Args:
        command: The command of each node.
        name: Name of the Deployment.
        nodes: Number of pods; UsageError is raised for less than 1.
        cores: Processors of each pod; UsageError is raised for less than 1.
        image: Container image that has the tuner.
        secret: Name of a Secret with certificates for the database; "": the pods have no certificates. It is
            mounted at /etc/tuner-fleet (MOUNTED), which ``command.certificates`` has to name.
    """
    import yaml

    labels = {"app.kubernetes.io/name": name}
    document = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": dict(labels)},
        "spec": {
            "replicas": at_least_one("nodes", nodes),
            "strategy": {"type": "Recreate"},  # never two nodes for one device
            "selector": {"matchLabels": dict(labels)},
            "template": {"metadata": {"labels": labels}, "spec": _pod(command, cores, image, secret)},
        },
    }
    return yaml.safe_dump(document, sort_keys=False)


def _pod(command: NodeCommand, cores: int, image: str, secret: str) -> dict[str, Any]:
    volumes: list[dict[str, Any]] = [{"name": "scratch", "emptyDir": {}}]
    mounts: list[dict[str, Any]] = [{"name": "scratch", "mountPath": SCRATCH}]
    if secret:
        volumes.append({"name": "certificates", "secret": {"secretName": secret, "defaultMode": READABLE}})
        mounts.append({"name": "certificates", "mountPath": MOUNTED, "readOnly": True})
    return {
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": DRAIN_S,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": NOBODY,
            "runAsGroup": NOBODY,
            "fsGroup": NOBODY,
        },
        "containers": [
            {
                "name": "node",
                "image": image,
                "command": list(command.words),
                "env": [{"name": key, "value": value} for key, value in _environment(command)],
                "resources": _resources(command, cores),
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "readOnlyRootFilesystem": True,
                    "capabilities": {"drop": ["ALL"]},
                },
                "volumeMounts": mounts,
            }
        ],
        "volumes": volumes,
    }


def _environment(command: NodeCommand) -> tuple[tuple[str, str], ...]:
    """Returns the node's variables, with a home folder: the user nobody has none."""
    return (*command.environment, ("HOME", SCRATCH))


def _resources(command: NodeCommand, cores: int) -> dict[str, dict[str, str]]:
    """Returns equal requests and limits: whole processors, where the kubelet's CPU policy is static."""
    gpu = {"nvidia.com/gpu": "1"} if command.needs_gpu else {}
    amounts = dict(gpu, cpu=str(at_least_one("cores", cores)))
    return {"requests": amounts, "limits": dict(amounts)}
