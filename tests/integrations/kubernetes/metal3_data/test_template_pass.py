"""How a template lists the numbers of its machines, in the bounds that CAPM3 publishes."""

from tenure.integrations.kubernetes.metal3_data.template_pass import LONGEST_LIST, listed_indexes


def template_of(version: str) -> dict[str, str]:
    return {"apiVersion": f"infrastructure.cluster.x-k8s.io/{version}"}


def test_v1beta1_lists_numbers_in_a_map_of_any_size() -> None:
    numbers = {f"m{number}": number for number in range(LONGEST_LIST + 88)}

    assert listed_indexes(template_of("v1beta1"), numbers) == numbers


def test_v1beta2_lists_the_lowest_numbers_that_its_list_has_room_for() -> None:
    """Else the server would refuse the whole status of a large template."""
    numbers = {f"m{number}": number for number in reversed(range(LONGEST_LIST + 88))}

    assert listed_indexes(template_of("v1beta2"), numbers) == [
        {"name": f"m{number}", "index": number} for number in range(LONGEST_LIST)
    ]
