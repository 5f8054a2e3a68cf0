from typing import Any

import pytest
import yaml

from tests.fleet.scripts.nodes import URL
from tuner.core.errors import UsageError
from tuner.fleet.commands.node_scripts import MOUNTED, NodeCommand, kubernetes_manifest


def manifest(command: NodeCommand, nodes: int = 3, secret: str = "") -> Any:
    return yaml.safe_load(kubernetes_manifest(command, "tuner: yes", nodes, 8, "registry/tuner:1", secret))


def node_of(document: Any) -> Any:
    (container,) = document["spec"]["template"]["spec"]["containers"]
    return container


def test_a_deployment_has_a_pod_for_each_node() -> None:
    command = NodeCommand(URL, slots=8)
    document = manifest(command)
    labels = {"app.kubernetes.io/name": "tuner: yes"}
    assert (document["apiVersion"], document["kind"]) == ("apps/v1", "Deployment")
    assert document["metadata"] == {"name": "tuner: yes", "labels": labels}
    spec = document["spec"]
    assert (spec["replicas"], spec["selector"]["matchLabels"]) == (3, labels)
    assert spec["template"]["metadata"]["labels"] == labels
    node = node_of(document)
    assert (node["image"], node["command"]) == ("registry/tuner:1", list(command.words))
    assert node["env"] == [{"name": "TUNER_DB", "value": URL}, {"name": "HOME", "value": "/tmp"}]
    assert node["resources"] == {"requests": {"cpu": "8"}, "limits": {"cpu": "8"}}


def test_certificates_are_those_of_a_secret_that_nobody_else_may_read() -> None:
    document = manifest(NodeCommand(URL, slots=8, certificates=MOUNTED), secret="fleet-tls")
    (volume,) = [each for each in document["spec"]["template"]["spec"]["volumes"] if "secret" in each]
    assert volume["secret"] == {"secretName": "fleet-tls", "defaultMode": 0o440}
    node = node_of(document)
    assert {"name": "PGSSLKEY", "value": "/etc/tuner-fleet/tls.key"} in node["env"]
    assert {"name": volume["name"], "mountPath": MOUNTED, "readOnly": True} in node["volumeMounts"]


def test_every_mount_is_a_volume_and_the_node_writes_to_none_but_its_own() -> None:
    document = manifest(NodeCommand(URL, slots=8, certificates=MOUNTED), secret="fleet-tls")
    pod, node = document["spec"]["template"]["spec"], node_of(document)
    assert {each["name"] for each in node["volumeMounts"]} == {each["name"] for each in pod["volumes"]}
    assert node["securityContext"]["readOnlyRootFilesystem"] is True
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["automountServiceAccountToken"] is False


def test_a_gpu_is_asked_for_where_one_is_measured_on_and_never_shared_by_two_pods_that_change_places() -> (
    None
):
    document = manifest(NodeCommand(URL, "cuda:sm_90", has_device=True), nodes=1)
    assert node_of(document)["resources"]["limits"] == {"cpu": "8", "nvidia.com/gpu": "1"}
    assert document["spec"]["strategy"] == {"type": "Recreate"}


def test_no_nodes_and_no_processors_are_refused() -> None:
    with pytest.raises(UsageError, match="nodes: found 0, allowed 1 or more"):
        manifest(NodeCommand(URL, slots=8), nodes=0)
    with pytest.raises(UsageError, match="cores: found -1, allowed 1 or more"):
        kubernetes_manifest(NodeCommand(URL, slots=8), "n", 1, -1, "i", "")
